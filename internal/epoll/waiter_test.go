// SPDX-License-Identifier: Apache-2.0

package epoll

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/napi"
)

var (
	doorbell = napi.Event{Napi: napi.Doorbell, Source: napi.SourceKick}
	irq      = napi.Event{Napi: 3, Source: napi.SourceIRQ}
	expiry   = napi.Event{Napi: 4, Source: napi.SourceTimer}
)

func expect(t *testing.T, got []napi.Event, want ...napi.Event) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("events %v, want %v", got, want)
	}
}

func TestWaiterReturnsEachEdgeOnceWithoutARead(t *testing.T) {
	w, fd := newWaiter(t), newEventFD(t)
	mustAdd(t, w, int(fd), irq)
	expect(t, wait(t, w, 0))
	for range 3 {
		fd.signal(t)
		fd.signal(t) // one edge, not two: nobody looked in between
		expect(t, wait(t, w, -1), irq)
		expect(t, wait(t, w, 0))
	}
}

func TestWaiterReturnsAnEdgeThatWasThereBeforeAdd(t *testing.T) {
	w, fd := newWaiter(t), newEventFD(t)
	fd.signal(t)
	mustAdd(t, w, int(fd), irq)
	expect(t, wait(t, w, -1), irq)
}

func TestWaiterForgetsARemovedDescriptor(t *testing.T) {
	w, fd := newWaiter(t), newEventFD(t)
	mustAdd(t, w, int(fd), irq)
	fd.signal(t)
	if err := w.Remove(int(fd)); err != nil {
		t.Fatal(err)
	}
	expect(t, wait(t, w, 0))
	if err := w.Remove(int(fd)); !errors.Is(err, unix.ENOENT) {
		t.Errorf("second Remove: %v, want ENOENT", err)
	}
	if err := w.Add(-1, irq); !errors.Is(err, unix.EBADF) {
		t.Errorf("Add of -1: %v, want EBADF", err)
	}
}

func TestWaiterWakeEndsTheWaitThatBlocksOrTheNextOne(t *testing.T) {
	w := newWaiter(t)
	for range 3 {
		if err := w.Wake(); err != nil {
			t.Fatal(err)
		}
		expect(t, wait(t, w, -1), doorbell)
		expect(t, wait(t, w, 0))
	}
	go func() {
		if err := w.Wake(); err != nil {
			t.Error(err)
		}
	}()
	expect(t, wait(t, w, -1), doorbell)
}

func TestWaiterKeepsWhatDoesNotFit(t *testing.T) {
	w := newWaiter(t)
	const descriptors = 5
	for i := range descriptors {
		fd := newEventFD(t)
		mustAdd(t, w, int(fd), napi.Event{Napi: i})
		fd.signal(t)
	}
	seen := map[int]bool{}
	evs := make([]napi.Event, 2)
	for len(seen) < descriptors {
		n, err := w.Wait(0, evs)
		if err != nil || n == 0 {
			t.Fatalf("%d events, %v; %d of %d seen", n, err, len(seen), descriptors)
		}
		for _, ev := range evs[:n] {
			seen[ev.Napi] = true
		}
	}
}

func TestWaiterCarriesTheWholeEvent(t *testing.T) {
	for _, ev := range []napi.Event{
		{Napi: 0, Source: napi.SourceIRQ}, {Napi: 1<<31 - 1, Source: napi.SourceMissed}, doorbell, expiry,
	} {
		w, fd := newWaiter(t), newEventFD(t)
		mustAdd(t, w, int(fd), ev)
		fd.signal(t)
		expect(t, wait(t, w, -1), ev)
	}
}

func TestWaiterTimeoutRoundsUp(t *testing.T) {
	for d, want := range map[time.Duration]int{
		-1: -1, 0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, time.Second: 1000,
	} {
		if got := milliseconds(d); got != want {
			t.Errorf("%v: %d ms, want %d", d, got, want)
		}
	}
	w := newWaiter(t)
	start := time.Now()
	expect(t, wait(t, w, 2*time.Millisecond))
	if took := time.Since(start); took < 2*time.Millisecond {
		t.Errorf("returned after %v, before the timeout", took)
	}
}

func TestTimerExpiresOncePerStartWithoutARead(t *testing.T) {
	w, timer := newWaiter(t), newTimer(t)
	mustAdd(t, w, timer.FD(), expiry)
	for range 100 {
		if err := timer.Start(time.Microsecond); err != nil {
			t.Fatal(err)
		}
		expect(t, wait(t, w, -1), expiry)
		expect(t, wait(t, w, 0))
	}
}

func TestTimerStartedWithNoTimeExpiresAtOnce(t *testing.T) {
	w, timer := newWaiter(t), newTimer(t)
	mustAdd(t, w, timer.FD(), expiry)
	for _, d := range []time.Duration{0, -1} {
		if err := timer.Start(d); err != nil {
			t.Fatal(err)
		}
		expect(t, wait(t, w, -1), expiry)
	}
}

func TestTimerStartReplacesWhatWasStarted(t *testing.T) {
	w, timer := newWaiter(t), newTimer(t)
	mustAdd(t, w, timer.FD(), expiry)
	for _, d := range []time.Duration{time.Hour, time.Microsecond} {
		if err := timer.Start(d); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, wait(t, w, -1), expiry)
}

func TestTimerAddedAfterItExpiredIsSeen(t *testing.T) {
	w, timer := newWaiter(t), newTimer(t)
	if err := timer.Start(1); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, w, timer.FD(), expiry)
	expect(t, wait(t, w, -1), expiry)
}

func TestClosedThingsRefuseAndLeaveNoDescriptor(t *testing.T) {
	before := openDescriptors(t)
	for range 20 {
		w, err := New()
		if err != nil {
			t.Fatal(err)
		}
		timer, err := NewTimer()
		if err != nil {
			t.Fatal(err)
		}
		mustAdd(t, w, timer.FD(), expiry)
		for name, f := range map[string]func() error{
			"close timer": timer.Close, "close waiter": w.Close,
			"close timer again": timer.Close, "close waiter again": w.Close,
		} {
			if err := f(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, err := range map[string]error{
			"wake": w.Wake(), "add": w.Add(0, irq), "remove": w.Remove(0), "start": timer.Start(1),
		} {
			if !errors.Is(err, os.ErrClosed) {
				t.Errorf("%s after close: %v, want os.ErrClosed", name, err)
			}
		}
	}
	if after := openDescriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}
