// SPDX-License-Identifier: Apache-2.0

package netlab_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// groupLeader in the environment turns the test program into a foreground program
// that has a process in a namespace.
const groupLeader = "NETLAB_GROUP_LEADER"

// leaderTimeout bounds the waits of the leader; only one that would hang reaches it.
const leaderTimeout = 30 * time.Second

// leadGroup starts a process, waits for Ctrl-C and stops it. It prints what the
// process wrote.
func leadGroup() (err error) {
	ctx, cancel := contextEnding(leaderTimeout)
	defer cancel()
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, unix.SIGINT)
	ns, err := netlab.NewNS("")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ns.Close()) }()
	p, err := ns.Start(netlab.Command{Path: "/bin/sh", Args: []string{"-c",
		`trap "echo interrupted" INT; trap "echo terminated; exit" TERM; echo ready; while :; do :; done`}})
	if err != nil {
		return err
	}
	defer p.Kill()
	if err := p.WaitLog(ctx, "ready"); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "started")
	select {
	case <-interrupts:
	case <-ctx.Done():
	}
	err = p.Stop(ctx)
	fmt.Fprintln(os.Stdout, p.Log())
	return err
}

// A terminal sends the signal of Ctrl-C to every process of the foreground group.
// It is for the program that started the process to say what that means for it.
func TestIntegrationProcessIsSparedTheSignalsOfOurProcessGroup(t *testing.T) {
	labtest.Privileged(t)
	leader := exec.CommandContext(labtest.Context(t), os.Args[0])
	leader.Env = append(os.Environ(), groupLeader+"=1")
	leader.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	out := &waited{text: "started", found: make(chan struct{})}
	leader.Stdout, leader.Stderr = out, out
	must(t, leader.Start())
	ended := make(chan error, 1)
	go func() { ended <- leader.Wait() }()
	select {
	case <-out.found:
	case err := <-ended:
		t.Fatalf("the leader ended: %v\n%s", err, &out.all)
	}
	must(t, unix.Kill(-leader.Process.Pid, unix.SIGINT))
	must(t, <-ended)
	if got, want := out.all.String(), "started\nready\nterminated\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// waited is an output that tells when a text has been written to it.
type waited struct {
	all   strings.Builder
	text  string
	once  sync.Once
	found chan struct{} // closed when text is there
}

func (w *waited) Write(b []byte) (int, error) {
	w.all.Write(b)
	if strings.Contains(w.all.String(), w.text) {
		w.once.Do(func() { close(w.found) })
	}
	return len(b), nil
}
