// SPDX-License-Identifier: Apache-2.0

package epoll

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/napi"
)

// deadline bounds every wait for a condition. It only ends a test that hangs.
const deadline = 60 * time.Second

func newWaiter(t testing.TB) *Waiter {
	t.Helper()
	w, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func newTimer(t testing.TB) *Timer {
	t.Helper()
	timer, err := NewTimer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := timer.Close(); err != nil {
			t.Error(err)
		}
	})
	return timer
}

// eventFD is a descriptor that becomes readable when signalled, as an XSK does when a
// packet comes in.
type eventFD int

func newEventFD(t testing.TB) eventFD {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return eventFD(fd)
}

func (fd eventFD) signal(t testing.TB) {
	if _, err := unix.Write(int(fd), []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		t.Errorf("signal: %v", err)
	}
}

func mustAdd(t testing.TB, w *Waiter, fd int, ev napi.Event) {
	t.Helper()
	if err := w.Add(fd, ev); err != nil {
		t.Fatal(err)
	}
}

// wait returns the events of one Wait.
func wait(t testing.TB, w *Waiter, timeout time.Duration) []napi.Event {
	t.Helper()
	evs := make([]napi.Event, batch)
	n, err := w.Wait(timeout, evs)
	if err != nil {
		t.Fatal(err)
	}
	return evs[:n]
}

func receive[T any](t testing.TB, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(deadline):
		t.Fatal("nothing happened within the deadline")
	}
	return v
}

func openDescriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
