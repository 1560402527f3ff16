// SPDX-License-Identifier: Apache-2.0

package epoll

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xskfwd/xskfwd/napi"
)

// queue is a Poller with a counted supply. If it may be looked at it stands for an XSK,
// whose ring is memory; if not, for a TAP, which has only its events.
type queue struct {
	supply  atomic.Int64
	handled atomic.Int64
	looked  bool
	onPoll  func() // called at the end of a poll; nil = none
}

func (q *queue) Poll(budget int) int {
	n := min(q.supply.Load(), int64(budget))
	q.supply.Add(-n)
	q.handled.Add(n)
	if q.onPoll != nil {
		q.onPoll()
	}
	return int(n)
}

func (q *queue) Pending() bool { return q.looked && q.supply.Load() > 0 }

// rig is a running loop on a real Waiter.
type rig struct {
	w    *Waiter
	loop *napi.Loop
}

func newRig(t testing.TB, cfg napi.LoopConfig) *rig {
	t.Helper()
	r := &rig{w: newWaiter(t)}
	cfg.Waiter = r.w
	if cfg.Yield == nil {
		cfg.Yield = Yield
	}
	loop, err := napi.NewLoop(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.loop = loop
	return r
}

// run runs the loop on a thread of its own until the test ends.
func (r *rig) run(t testing.TB) {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		done <- r.loop.Run()
	}()
	t.Cleanup(func() {
		r.loop.Stop()
		if err := receive(t, done); err != nil {
			t.Errorf("Run returned %v", err)
		}
		if failed := r.loop.FailedWakes(); failed != 0 {
			t.Errorf("%d doorbells could not be rung", failed)
		}
	})
}

// await waits until the condition holds. Nothing else may be needed to make it hold.
func await(t testing.TB, what string, holds func() bool) bool {
	t.Helper()
	var limit time.Time
	for i := 1; !holds(); i++ {
		runtime.Gosched()
		if i%4096 != 0 {
			continue
		}
		if limit.IsZero() {
			limit = time.Now().Add(deadline)
		} else if time.Now().After(limit) {
			t.Errorf("%s: waited in vain", what)
			return false
		}
	}
	return true
}

// dawdle takes a random short time, so that every instruction of the loop's way to sleep
// has its turn at being the one that is raced with.
func dawdle() {
	for range rand.IntN(400) {
		spinSink.Add(1)
	}
}

var spinSink atomic.Int64

// stress calls race up to n times, or until the time is up: on a machine that others use
// as well, a hundred thousand races can take seconds or minutes.
func stress(t *testing.T, n int, race func(i int64) bool) {
	const enough = time.Second
	start := time.Now()
	for i := range int64(n) {
		if !race(i) {
			return
		}
		if i%64 == 0 && time.Since(start) > enough {
			t.Logf("%d races of %d in the time allowed", i+1, n)
			return
		}
	}
}

func TestLoopLosesNoWakeup(t *testing.T) {
	for _, mode := range []napi.Mode{napi.Interrupt, napi.Adaptive, napi.Busy} {
		for _, kind := range []struct {
			name   string
			looked bool
			kick   bool
		}{
			{name: "ring-and-edge", looked: true},
			{name: "edge-only"},
			{name: "kick", kick: true},
		} {
			t.Run(mode.String()+"/"+kind.name, func(t *testing.T) {
				r := newRig(t, napi.LoopConfig{Mode: mode, AdaptiveWindow: 5 * time.Microsecond, EventInterval: 5 * time.Microsecond})
				q, fd := &queue{looked: kind.looked}, newEventFD(t)
				n := napi.New("n", q, 0)
				mustAdd(t, r.w, int(fd), napi.Event{Napi: r.loop.Add(n), Source: napi.SourceIRQ})
				r.run(t)
				stress(t, 100_000, func(i int64) bool {
					dawdle()
					q.supply.Add(1)
					if kind.kick {
						n.Schedule(napi.SourceKick)
					} else {
						fd.signal(t)
					}
					return await(t, "the packet", func() bool { return q.handled.Load() == i+1 })
				})
			})
		}
	}
}
