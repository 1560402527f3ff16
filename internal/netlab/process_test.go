// SPDX-License-Identifier: Apache-2.0

package netlab_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

func contextEnding(after time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), after)
}

// shell starts a script in a fresh namespace.
func shell(t *testing.T, script string) (*netlab.NS, *netlab.Process) {
	t.Helper()
	labtest.Privileged(t)
	ns := labtest.NS(t)
	return ns, labtest.StartProcess(t, ns, netlab.Command{Path: "/bin/sh", Args: []string{"-c", script}})
}

func TestIntegrationProcessRunsInNamespaceWithOurMounts(t *testing.T) {
	ns, p := shell(t, "readlink /proc/self/ns/net; readlink /proc/self/ns/mnt")
	must(t, p.Wait(labtest.Context(t)))
	want := identityOf(t, ns) + "\n"
	out, err := exec.Command("readlink", "/proc/self/ns/mnt").Output()
	must(t, err)
	if want += string(out); p.Log() != want {
		t.Errorf("process is in\n%swant\n%s", p.Log(), want)
	}
}

func TestIntegrationProcessRunsOnItsCPUs(t *testing.T) {
	labtest.Privileged(t)
	p := labtest.StartProcess(t, labtest.NS(t), netlab.Command{
		Path: "/bin/grep", Args: []string{"Cpus_allowed_list", "/proc/self/status"}, CPUs: []int{0},
	})
	must(t, p.Wait(labtest.Context(t)))
	if fields := strings.Fields(p.Log()); len(fields) != 2 || fields[1] != "0" {
		t.Errorf("process may run on %q, want CPU 0", p.Log())
	}
}

func TestIntegrationProcessWaitLogSeesBothStreams(t *testing.T) {
	_, p := shell(t, "echo one; echo two >&2; exec cat")
	must(t, p.WaitLog(labtest.Context(t), "one"))
	must(t, p.WaitLog(labtest.Context(t), "two"))
}

func TestIntegrationProcessWaitLogFailsWhenProcessEnds(t *testing.T) {
	_, p := shell(t, "echo why; exit 3")
	err := p.WaitLog(labtest.Context(t), "ready")
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "why") {
		t.Errorf("got %v, want the exit status and the output", err)
	}
}

func TestIntegrationProcessStopTerminatesAndReportsExit(t *testing.T) {
	_, p := shell(t, `trap "exit 7" TERM; echo ready; while :; do :; done`)
	must(t, p.WaitLog(labtest.Context(t), "ready"))
	var exit *exec.ExitError
	if err := p.Stop(labtest.Context(t)); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("stop: %v, want exit status 7", err)
	}
	must(t, gone(p.Pid()))
}

func TestIntegrationProcessStopKillsWhatDoesNotEnd(t *testing.T) {
	_, p := shell(t, `trap "" TERM; echo ready; while :; do :; done`)
	must(t, p.WaitLog(labtest.Context(t), "ready"))
	ctx, cancel := contextEnding(time.Millisecond)
	defer cancel()
	if err := p.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stop: %v, want it to say that the process had to be killed", err)
	}
	must(t, gone(p.Pid()))
}

func TestIntegrationProcessStartFailureNamesProgram(t *testing.T) {
	labtest.Privileged(t)
	_, err := labtest.NS(t).Start(netlab.Command{Path: "/nonexistent/program"})
	if !errors.Is(err, syscall.ENOENT) || !strings.Contains(err.Error(), "/nonexistent/program") {
		t.Errorf("got %v", err)
	}
}

// gone fails if a process of this number can still be signalled.
func gone(pid int) error {
	if err := unix.Kill(pid, 0); !errors.Is(err, unix.ESRCH) {
		return errors.New("process is still there")
	}
	return nil
}
