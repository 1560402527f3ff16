// SPDX-License-Identifier: Apache-2.0

package epoll

import (
	"runtime"
	"testing"
	"time"

	"github.com/xskfwd/xskfwd/napi"
)

func TestWaiterAndTimerDoNotAllocate(t *testing.T) {
	w, timer := newWaiter(t), newTimer(t)
	mustAdd(t, w, timer.FD(), expiry)
	evs := make([]napi.Event, batch)
	allocs := testing.AllocsPerRun(100, func() {
		if w.Wake() != nil || timer.Start(time.Hour) != nil {
			t.Error("refused")
		}
		if n, err := w.Wait(-1, evs); n != 1 || err != nil {
			t.Errorf("%d events, %v", n, err)
		}
		if n, err := w.Wait(0, evs); n != 0 || err != nil {
			t.Errorf("%d events, %v", n, err)
		}
		Yield()
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}

func BenchmarkWaiterLook(b *testing.B) {
	w := newWaiter(b)
	evs := make([]napi.Event, batch)
	for b.Loop() {
		if _, err := w.Wait(0, evs); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWaiterWakeAndWait(b *testing.B) {
	w := newWaiter(b)
	evs := make([]napi.Event, batch)
	for b.Loop() {
		if err := w.Wake(); err != nil {
			b.Fatal(err)
		}
		if _, err := w.Wait(-1, evs); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTimerStart(b *testing.B) {
	timer := newTimer(b)
	for b.Loop() {
		if err := timer.Start(napi.DefaultTxDelay); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkYield(b *testing.B) {
	for b.Loop() {
		Yield()
	}
}

// BenchmarkTxTimerTurns sends a frame to an instance by turns idle and scheduled, the
// worst that a timer can be asked for. The loop does not run: its part is done here.
func BenchmarkTxTimerTurns(b *testing.B) {
	for _, rule := range []napi.ArmRule{napi.ArmIdle, napi.ArmAlways} {
		b.Run(rule.String(), func(b *testing.B) {
			r := newTxRig(b, napi.Interrupt, napi.TxTimerConfig{Delay: napi.DefaultTxDelay, Rule: rule})
			r.napi.CompleteDone(0) // the schedule of Loop.Add
			for i := 0; b.Loop(); i++ {
				r.timer.Sent(1)
				r.napi.ScheduleCheck()
				r.timer.Sent(1)
				r.timer.Reaped(2)
				r.napi.CompleteDone(0)
				if i%1024 == 0 && len(wait(b, r.w, 0)) > 0 {
					r.timer.Expired()
					r.napi.CompleteDone(0)
				}
			}
			b.ReportMetric(float64(r.timer.Stats().Syscalls)/float64(b.N), "syscalls/op")
		})
	}
}

// BenchmarkLoopHandlesOnePacket is the time from a packet and its event to the packet
// handled by a loop on another thread: sleeping, looking on, or never sleeping.
func BenchmarkLoopHandlesOnePacket(b *testing.B) {
	for _, mode := range []napi.Mode{napi.Interrupt, napi.Adaptive, napi.Busy} {
		b.Run(mode.String(), func(b *testing.B) {
			r := newRig(b, napi.LoopConfig{Mode: mode})
			q, fd := &queue{looked: true}, newEventFD(b)
			mustAdd(b, r.w, int(fd), napi.Event{Napi: r.loop.Add(napi.New("n", q, 0)), Source: napi.SourceIRQ})
			r.run(b)
			sent := int64(0)
			for b.Loop() {
				sent++
				q.supply.Add(1)
				fd.signal(b)
				for q.handled.Load() != sent {
					runtime.Gosched()
				}
			}
		})
	}
}
