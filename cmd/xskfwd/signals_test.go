// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/config"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

var runWire = []string{"run", "-p", "a", "-p", "b", "--wire", "a=b"}

func raise(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := unix.Kill(os.Getpid(), signal); err != nil {
		t.Error(err)
	}
}

func TestSignalEndsRunCleanly(t *testing.T) {
	for _, signal := range []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			w := newWorld(t)
			w.env.run = func(ctx context.Context, _ *config.Config, _ *slog.Logger) error {
				raise(t, signal)
				<-ctx.Done()
				return nil
			}
			if code := w.main(runWire); code != exitOK {
				t.Errorf("exit code %d", code)
			}
			if !strings.Contains(w.err.String(), "msg=stopping signal="+`"`+signal.String()) &&
				!strings.Contains(w.err.String(), "msg=stopping signal="+signal.String()) {
				t.Errorf("stderr %q", w.err.String())
			}
		})
	}
}

// clock is a time that passes when it is told to.
type clock struct{ elapsed atomic.Int64 }

func (c *clock) now() time.Time       { return time.Unix(0, c.elapsed.Load()) }
func (c *clock) pass(d time.Duration) { c.elapsed.Add(int64(d)) }

func TestLaterSignalDoesNotWait(t *testing.T) {
	w, c := newWorld(t), &clock{}
	w.now = c.now
	exited := make(chan int, 1)
	w.exit = func(code int) { exited <- code }
	w.run = func(ctx context.Context, _ *config.Config, _ *slog.Logger) error {
		raise(t, unix.SIGTERM)
		<-ctx.Done()
		c.pass(oneStop)
		raise(t, unix.SIGINT)
		if code := <-exited; code != exitFailure {
			t.Errorf("exit code %d, want %d", code, exitFailure)
		}
		return nil
	}
	w.main(runWire)
	if want := "xskfwd: second signal (interrupt): exit without cleaning up\n"; !strings.HasSuffix(w.err.String(), want) {
		t.Errorf("stderr %q, want %q at its end", w.err.String(), want)
	}
}

// timeout(1) signals its child and then the whole group.
func TestSignalsInQuickSuccessionAreOneStop(t *testing.T) {
	w, c := newWorld(t), &clock{}
	w.now = c.now
	w.run = func(ctx context.Context, _ *config.Config, _ *slog.Logger) error {
		raise(t, unix.SIGTERM)
		<-ctx.Done()
		c.pass(oneStop - 1)
		for _, s := range []syscall.Signal{unix.SIGTERM, unix.SIGHUP} {
			raise(t, s)
			labtest.WaitFor(t, "word of the "+s.String()+" signal", func() bool {
				return strings.Contains(w.err.String(), "a signal that comes later forces the exit\" signal="+s.String())
			})
		}
		return nil
	}
	if code := w.main(runWire); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}
