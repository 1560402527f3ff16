// SPDX-License-Identifier: Apache-2.0

package sdnotify

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// manager is the service manager's end of the socket.
type manager struct {
	*net.UnixConn
	name string
}

func listen(t *testing.T, name string) manager {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return manager{c, name}
}

// next is the next message; a test that waits for one in vain fails.
func (m manager) next(t *testing.T) string {
	t.Helper()
	if err := m.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := m.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return string(buf[:n])
}

// silent says whether nothing has been sent that was not read. A datagram on a unix socket is there as soon as it is sent.
func (m manager) silent(t *testing.T) bool {
	t.Helper()
	raw, err := m.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var got error
	err = raw.Control(func(fd uintptr) {
		_, _, got = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	if err != nil {
		t.Fatal(err)
	}
	return errors.Is(got, syscall.EAGAIN)
}

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func notifier(t *testing.T, pairs ...string) *Notifier {
	t.Helper()
	n, err := FromEnvironment(environment(pairs...), os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func sockets(t *testing.T) map[string]string {
	return map[string]string{
		"path":     filepath.Join(t.TempDir(), "notify"),
		"abstract": "@xskfwd-sdnotify-test-" + strconv.Itoa(os.Getpid()),
	}
}

func TestNotifierSendsEachStateAsOneDatagram(t *testing.T) {
	for kind, name := range sockets(t) {
		t.Run(kind, func(t *testing.T) {
			m := listen(t, name)
			n := notifier(t, "NOTIFY_SOCKET", name)
			for _, step := range []struct {
				send func() error
				want string
			}{
				{func() error { return n.Status("starting") }, "STATUS=starting"},
				{func() error { return n.Ready("2 ports forward") }, "READY=1\nSTATUS=2 ports forward"},
				{n.Watchdog, "WATCHDOG=1"},
				{func() error { return n.Reloading(1500 * time.Microsecond) }, "RELOADING=1\nMONOTONIC_USEC=1500"},
				{func() error { return n.Stopping("SIGTERM") }, "STOPPING=1\nSTATUS=SIGTERM"},
				{func() error { return n.Status("a\nREADY=1\x00b") }, "STATUS=a READY=1 b"},
			} {
				if err := step.send(); err != nil {
					t.Fatal(err)
				}
				if got := m.next(t); got != step.want {
					t.Errorf("got %q, want %q", got, step.want)
				}
			}
		})
	}
}

func TestNotifierWithoutASocketDoesNothing(t *testing.T) {
	n := notifier(t, "WATCHDOG_USEC", "1000000")
	if n.Enabled() || n.WatchdogInterval() != 0 {
		t.Errorf("enabled %v, watchdog %v", n.Enabled(), n.WatchdogInterval())
	}
	for _, err := range []error{n.Ready(""), n.Status(""), n.Stopping(""), n.Reloading(0), n.Watchdog()} {
		if err != nil {
			t.Error(err)
		}
	}
	n.FeedWatchdog(context.Background(), func() time.Duration { t.Error("asked"); return 0 }, slog.New(slog.DiscardHandler))
}

func TestNotifierNamesTheSocketThatNobodyReads(t *testing.T) {
	name := filepath.Join(t.TempDir(), "gone")
	err := notifier(t, "NOTIFY_SOCKET", name).Ready("")
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), name) {
		t.Errorf("err = %v", err)
	}
}

func TestNotifierDoesNotWaitForAManagerThatNeverReads(t *testing.T) {
	m := listen(t, filepath.Join(t.TempDir(), "notify"))
	n := notifier(t, "NOTIFY_SOCKET", m.name)
	for range 100_000 { // more than any queue of a socket takes
		if err := n.Watchdog(); err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("err = %v", err)
			}
			return
		}
	}
	t.Error("no message was refused")
}

func TestEnvironmentIsReadAsTheManagerMeansIt(t *testing.T) {
	self := strconv.Itoa(os.Getpid())
	for name, c := range map[string]struct {
		socket, usec, pid string
		watchdog          time.Duration
		fails             bool
	}{
		"no-watchdog":         {socket: "/run/x"},
		"watchdog":            {socket: "/run/x", usec: "10000000", watchdog: 10 * time.Second},
		"watchdog-for-us":     {socket: "@x", usec: "5000", pid: self, watchdog: 5 * time.Millisecond},
		"watchdog-for-others": {socket: "@x", usec: "5000", pid: "1"},
		"watchdog-no-number":  {socket: "/run/x", usec: "soon", fails: true},
		"watchdog-zero":       {socket: "/run/x", usec: "0", fails: true},
		"watchdog-negative":   {socket: "/run/x", usec: "-5", fails: true},
		"watchdog-too-large":  {socket: "/run/x", usec: "9223372036854775807", fails: true},
		"vsock":               {socket: "vsock:2:1234", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			env := environment("NOTIFY_SOCKET", c.socket, "WATCHDOG_USEC", c.usec, "WATCHDOG_PID", c.pid)
			n, err := FromEnvironment(env, os.Getpid())
			if (err != nil) != c.fails {
				t.Fatalf("err = %v, want an error: %v", err, c.fails)
			}
			if got := n.WatchdogInterval(); got != c.watchdog {
				t.Errorf("watchdog %v, want %v", got, c.watchdog)
			}
		})
	}
}

func TestWatchdogIsFedOnlyWhileNoWorkerIsStuck(t *testing.T) {
	const interval = 10 * time.Second
	m := listen(t, filepath.Join(t.TempDir(), "notify"))
	n := notifier(t, "NOTIFY_SOCKET", m.name, "WATCHDOG_USEC", "10000000")
	ctx, cancel := context.WithCancel(context.Background())
	ticks, ages := make(chan time.Time), make(chan time.Duration)
	var log bytes.Buffer
	var feeding sync.WaitGroup
	feeding.Go(func() {
		n.feed(ctx, ticks, func() time.Duration { return <-ages }, slog.New(slog.NewTextHandler(&log, nil)))
	})
	for i, step := range []struct {
		age time.Duration
		fed bool
	}{
		{0, true}, {time.Millisecond, true}, {interval / 2, true},
		{interval/2 + 1, false}, {interval, false}, {time.Hour, false},
		{0, true}, {interval, false},
	} {
		ages <- step.age
		ticks <- time.Time{} // taken only after the decision
		if fed := !m.silent(t); fed != step.fed {
			t.Errorf("step %d: slowest worker at %v: fed %v, want %v", i, step.age, fed, step.fed)
		}
		if step.fed {
			if got := m.next(t); got != "WATCHDOG=1" {
				t.Errorf("step %d: got %q", i, got)
			}
		}
	}
	ages <- 0
	cancel()
	feeding.Wait()
	if got := strings.Count(log.String(), "a worker is stuck"); got != 2 {
		t.Errorf("the log tells of %d stuck workers, want one line for each of 2:\n%s", got, log.String())
	}
}

func TestWatchdogIsFedInTimeByTheRealClock(t *testing.T) {
	m := listen(t, filepath.Join(t.TempDir(), "notify"))
	n := notifier(t, "NOTIFY_SOCKET", m.name, "WATCHDOG_USEC", "20000")
	ctx, cancel := context.WithCancel(context.Background())
	var feeding sync.WaitGroup
	feeding.Go(func() { n.FeedWatchdog(ctx, func() time.Duration { return 0 }, slog.New(slog.DiscardHandler)) })
	for range 3 {
		if got := m.next(t); got != "WATCHDOG=1" {
			t.Errorf("got %q", got)
		}
	}
	cancel()
	feeding.Wait()
}

func TestWatchdogSaysOnceThatTheManagerIsGone(t *testing.T) {
	n := notifier(t, "NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"), "WATCHDOG_USEC", "10000000")
	ctx, cancel := context.WithCancel(context.Background())
	ticks := make(chan time.Time)
	var log bytes.Buffer
	var feeding sync.WaitGroup
	feeding.Go(func() {
		n.feed(ctx, ticks, func() time.Duration { return 0 }, slog.New(slog.NewTextHandler(&log, nil)))
	})
	for range 5 {
		ticks <- time.Time{}
	}
	cancel()
	feeding.Wait()
	if got := strings.Count(log.String(), "\n"); got != 1 {
		t.Errorf("%d lines, want 1:\n%s", got, log.String())
	}
}
