// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/config"
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

func TestSecondSignalDoesNotWait(t *testing.T) {
	w := newWorld(t)
	exited := make(chan int, 1)
	w.exit = func(code int) { exited <- code }
	w.run = func(ctx context.Context, _ *config.Config, _ *slog.Logger) error {
		raise(t, unix.SIGTERM)
		<-ctx.Done()
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
