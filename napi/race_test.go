// SPDX-License-Identifier: Apache-2.0

package napi

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
)

// unseen passes a flag between goroutines without the race detector taking it for
// synchronisation.
type unseen struct{ flag bool }

//go:norace
//go:noinline
func (u *unseen) set() { u.flag = true }

//go:norace
//go:noinline
func (u *unseen) isSet() bool { return u.flag }

// TestNapiScheduleOrdersPlainWorkBeforeThePoll needs the race detector to fail: it sees
// whether a schedule that changes nothing, both bits being set, still orders the memory
// written before it ahead of the poll that follows.
func TestNapiScheduleOrdersPlainWorkBeforeThePoll(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(n *Napi)
		after  func(n *Napi)
	}{
		{"missed-already", func(n *Napi) { n.ScheduleCheck(); n.ScheduleCheck() }, func(n *Napi) { n.CompleteDone(0) }},
		{"disabled", func(n *Napi) { n.move(onDisable) }, func(n *Napi) { n.move(onEnable) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, _ := newTestLoop(t, LoopConfig{})
			n := New("n", &work{}, 0)
			l.Add(n)
			c.before(n)
			var done unseen
			item := 0
			go func() {
				item = 1
				n.Schedule(SourceKick)
				done.set()
			}()
			for !done.isSet() {
				runtime.Gosched()
			}
			c.after(n)
			if item != 1 {
				t.Error("the poll does not see the item")
			}
		})
	}
}

// TestTxTimerCoversWhatASendRacedWithTheEndOfAPoll races one transmit with one poll, and
// then looks whether somebody will still bring the frame home.
func TestTxTimerCoversWhatASendRacedWithTheEndOfAPoll(t *testing.T) {
	r := newTimerRig(t, TxTimerConfig{Delay: DefaultTxDelay})
	dawdle := func() {
		for range rand.IntN(100) {
			runtime.KeepAlive(r)
		}
	}
	r.work.onPoll = func(int) {
		r.Reaped(r.Unreaped())
		dawdle() // what is sent now is left in the ring
	}
	const races = 100_000
	var started, finished atomic.Int64
	sender := make(chan struct{})
	go func() {
		defer close(sender)
		for i := range int64(races) {
			for started.Load() <= i {
				runtime.Gosched()
			}
			dawdle()
			r.Sent(1)
			finished.Add(1)
		}
	}()
	for i := range int64(races) {
		if i%2 == 0 {
			r.Sent(1) // so that the timer runs and can be cancelled
		}
		r.napi.Schedule(SourceIRQ)
		started.Store(i + 1)
		dawdle()
		r.loop.gather()
		r.loop.round()
		for finished.Load() <= i {
			runtime.Gosched()
		}
		if r.Unreaped() > 0 && !r.napi.IsScheduled() && !r.Stats().Running {
			t.Errorf("race %d: a frame is out, nobody is scheduled and no timer runs", i)
			break
		}
		r.Reaped(r.Unreaped())
	}
	started.Store(races)
	receive(t, sender)
}
