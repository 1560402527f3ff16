// SPDX-License-Identifier: Apache-2.0

package napi

import "testing"

func TestLoopTurnsWithoutAllocating(t *testing.T) {
	l, w := newTestLoop(t, LoopConfig{Mode: Busy, EventInterval: 1})
	pollers := make([]*work, 8)
	napis := make([]*Napi, 8)
	for i := range pollers {
		pollers[i] = &work{pending: i%2 == 0}
		napis[i] = New("n", pollers[i], 0)
		l.Add(napis[i])
	}
	w.queue = make([]Event, 0, 16)
	expectNoAllocs(t, func() {
		for i, p := range pollers {
			p.supply.Add(100)
			napis[i].Schedule(SourceKick)
		}
		w.post(Event{Napi: 1, Source: SourceIRQ})
		for range 4 {
			l.mustTurn(t)
		}
	})
}

func TestTxTimerSendsWithoutAllocating(t *testing.T) {
	for _, rule := range []ArmRule{ArmIdle, ArmAlways} {
		r := newTimerRig(t, TxTimerConfig{Delay: DefaultTxDelay, Frames: DefaultTxFrames, Rule: rule})
		expectNoAllocs(t, func() {
			r.Sent(1)
			r.Sent(30)
			r.Sent(1)
			r.Reaped(32)
			r.loop.mustTurn(t)
			r.Expired()
			r.loop.mustTurn(t)
			_ = r.Stats()
		})
	}
}

func expectNoAllocs(t *testing.T, f func()) {
	t.Helper()
	if allocs := testing.AllocsPerRun(100, f); allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}
