// SPDX-License-Identifier: Apache-2.0

package netlab

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pipeDelay is how long a process's output may stay open after its end, by a
// child it left behind, before we stop reading.
const pipeDelay = 5 * time.Second

// Command is a program to be started in a namespace.
type Command struct {
	Path string
	Args []string  // without the program's name
	Env  []string  // nil: this process's
	CPUs []int     // the CPUs it may run on; nil: this process's
	Tee  io.Writer // gets the output as well; nil: nothing does
}

// Process is a program running in a namespace. It sees the mounts of this
// process, as with nsenter --net=FILE, and is killed if this process dies. It is
// in a process group of its own: what a terminal sends to ours, as at Ctrl-C,
// does not reach it.
type Process struct {
	cmd  *exec.Cmd
	log  *logBuffer
	done chan struct{} // closed after err is written
	err  error         // what Wait said
}

// Start starts a program in the namespace.
func (ns *NS) Start(c Command) (*Process, error) {
	log := &logBuffer{tee: c.Tee, grown: make(chan struct{})}
	p := &Process{cmd: exec.Command(c.Path, c.Args...), log: log, done: make(chan struct{})}
	p.cmd.Env = c.Env
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.WaitDelay = pipeDelay
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	started := make(chan error, 1)
	OnOwnThread(func() { ns.run(p, c.CPUs, started) })
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	return p, nil
}

// run starts the process and waits for it on one thread: the child inherits
// the thread's namespace and CPUs, and its parent-death signal goes by the
// thread, which must therefore live as long as the child.
func (ns *NS) run(p *Process, cpus []int, started chan<- error) {
	err := ns.Enter()
	if err == nil {
		err = PinThread(cpus)
	}
	if err == nil {
		err = p.cmd.Start()
	}
	started <- err
	if err == nil {
		p.err = p.cmd.Wait()
		close(p.done)
	}
}

// PinThread lets the calling thread run on the given CPUs only; no CPUs
// change nothing.
func PinThread(cpus []int) error {
	if len(cpus) == 0 {
		return nil
	}
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin thread to CPUs %v: %w", cpus, err)
	}
	return nil
}

// Pid is the process's number.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Log is what the process has written so far, to either stream.
func (p *Process) Log() string { return p.log.String() }

// Signal sends a signal; to a process that has ended it is os.ErrProcessDone.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// Wait waits for the end of the process and returns nil if it exited with 0.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("process %d (%s): still running: %w", p.Pid(), p.cmd.Path, ctx.Err())
	}
}

// Stop asks the process to end and waits for it. If ctx ends first the
// process is killed, and Stop says so.
func (p *Process) Stop(ctx context.Context) error {
	_ = p.Signal(unix.SIGTERM) // an ended process needs no signal
	err := p.Wait(ctx)
	if ctx.Err() != nil {
		p.Kill()
	}
	return err
}

// Kill ends the process at once and waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // an ended process needs no signal
	<-p.done
}

// WaitLog waits until the process has written text. It fails at once if the
// process ends without.
func (p *Process) WaitLog(ctx context.Context, text string) error {
	for {
		ended := false
		select {
		case <-p.done:
			ended = true
		default:
		}
		log, grown := p.log.watch()
		switch {
		case strings.Contains(log, text):
			return nil
		case ended:
			return fmt.Errorf("process %d (%s) ended (%v) without writing %q; it wrote:\n%s", p.Pid(), p.cmd.Path, p.err, text, log)
		}
		select {
		case <-grown:
		case <-p.done:
		case <-ctx.Done():
			return fmt.Errorf("process %d (%s) did not write %q; it wrote:\n%s: %w", p.Pid(), p.cmd.Path, text, log, ctx.Err())
		}
	}
}

// logBuffer keeps all that is written to it and tells when there is more.
type logBuffer struct {
	tee io.Writer

	mu    sync.Mutex
	buf   bytes.Buffer
	grown chan struct{} // closed and replaced at each write
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Write(b)
	close(l.grown)
	l.grown = make(chan struct{})
	if l.tee != nil {
		return l.tee.Write(b)
	}
	return len(b), nil
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// watch returns the log and a channel that is closed at the next write.
func (l *logBuffer) watch() (string, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String(), l.grown
}
