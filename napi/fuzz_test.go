// SPDX-License-Identifier: Apache-2.0

package napi

import "testing"

// FuzzLoopHandlesEverything runs a random story on three instances and then expects every
// packet handled, nobody scheduled, and the counters to add up.
func FuzzLoopHandlesEverything(f *testing.F) {
	f.Add([]byte{0, 10, 20, 3, 0, 1, 2, 3, 33, 43, 4, 14, 24, 3, 5, 15, 25, 3})
	f.Add([]byte{200, 210, 220, 3, 3, 3, 4, 0, 5, 3, 1, 1, 1, 2, 3, 6, 3})
	f.Fuzz(func(t *testing.T, story []byte) {
		clock := &manualClock{step: 1000}
		l, w := newTestLoop(t, LoopConfig{Mode: Busy, Clock: clock.read, Budget: 7, EventInterval: 2000})
		const instances = 3
		pollers, napis := make([]*work, instances), make([]*Napi, instances)
		for i := range napis {
			pollers[i] = &work{pending: i != 0} // the first lives from its events
			napis[i] = New("n", pollers[i], 4)
			l.Add(napis[i])
		}
		given := int64(0)
		for _, b := range story {
			i := int(b/8) % instances
			p, n := pollers[i], napis[i]
			switch b % 8 {
			case 0: // packets and their event
				p.supply.Add(int64(b))
				given += int64(b)
				w.post(Event{Napi: i, Source: SourceIRQ})
			case 1:
				n.Schedule(SourceKick)
			case 2: // a schedule in the middle of the next poll
				p.onPoll = func(int) { p.onPoll = nil; n.Schedule(SourceKick) }
			case 3:
				l.mustTurn(t)
			case 4:
				n.Disable()
			case 5:
				n.Enable()
			case 6:
				w.post(Event{Napi: i, Source: SourceTimer})
			default:
				w.post(Event{Napi: int(b) - 128})
			}
		}
		for _, n := range napis {
			n.Enable()
		}
		for range 20 + given + int64(len(story)) {
			l.mustTurn(t)
		}
		checkAllHandled(t, l, napis, given)
	})
}

func checkAllHandled(t *testing.T, l *Loop, napis []*Napi, given int64) {
	t.Helper()
	var sum Stats
	for _, n := range napis {
		if n.IsScheduled() {
			t.Errorf("an instance is still scheduled")
		}
		s := n.Stats()
		sum.Polls += s.Polls
		sum.Empty += s.Empty
		sum.Exhausted += s.Exhausted
		sum.Packets += s.Packets
		for i := range s.Schedules {
			sum.Schedules[i] += s.Schedules[i]
		}
	}
	s := l.Stats()
	if sum.Packets != uint64(given) {
		t.Errorf("%d packets handled of %d", sum.Packets, given)
	}
	if got := (Stats{s.Polls, s.EmptyPolls, s.Exhausted, s.Packets, s.Schedules}); got != sum {
		t.Errorf("loop counted %+v, its instances %+v", got, sum)
	}
}

// FuzzTxTimerAgainstATwin compares the timer with a few plain variables that say what
// section 5 of the mechanisms asks for, and ends with all frames at home.
func FuzzTxTimerAgainstATwin(f *testing.F) {
	f.Add([]byte{0, 0, 1, 2, 0, 3, 4, 0, 1, 3, 2, 3}, false)
	f.Add([]byte{8, 0, 16, 1, 0, 3, 2, 2, 0, 3, 96, 0, 200, 2, 3}, true)
	f.Fuzz(func(t *testing.T, story []byte, always bool) {
		cfg := usual
		if always {
			cfg.Rule = ArmAlways
		}
		r := newTimerRig(t, cfg)
		home := 0
		r.work.onPoll = func(int) {
			n := min(home, r.Unreaped())
			home -= n
			r.Reaped(n)
		}
		var twin struct {
			running                      bool
			armed, fired, ended, skipped uint64
		}
		arm := func(again bool) {
			if twin.running && again {
				twin.ended++
			}
			if again || !twin.running {
				twin.armed++
			}
			twin.running = true
		}
		ticking := false // whether the kernel's timer runs
		for _, b := range story {
			starts := r.fake.starts.Load()
			switch b % 5 {
			case 0: // transmit
				frames := 1 + int(b)/32
				full := r.Unreaped()+frames >= DefaultTxFrames
				switch scheduled := r.napi.IsScheduled(); {
				case always:
					arm(true)
				case scheduled:
					twin.skipped++
					if twin.running {
						twin.running = false
						twin.ended++
					}
				case !full:
					arm(false)
				}
				r.Sent(frames)
			case 1:
				r.napi.Schedule(SourceIRQ)
			case 2: // the device completes some
				home += 1 + int(b)/16
			case 3: // the loop's turn
				polled := r.napi.IsScheduled()
				r.loop.mustTurn(t)
				if polled && r.Unreaped() > 0 {
					arm(false)
				}
			default: // the kernel's timer expires, if it runs
				if !ticking {
					continue
				}
				ticking = false
				if twin.running {
					twin.running = false
					twin.fired++
				}
				r.Expired()
			}
			ticking = ticking || r.fake.starts.Load() > starts
			s := r.Stats()
			checkIdentity(t, TxTimerStats{}, s)
			if s.Armed != twin.armed || s.Fired != twin.fired || s.Cancelled != twin.ended || s.Skipped != twin.skipped || s.Running != twin.running {
				t.Fatalf("timer %+v, twin %+v", s, twin)
			}
			if s.Running && !ticking {
				t.Fatal("armed, but the kernel's timer does not run")
			}
		}
		home = 1 << 20
		if !r.napi.IsScheduled() && r.Unreaped() > 0 {
			if !ticking {
				t.Fatalf("%d frames are out, and nothing will happen any more", r.Unreaped())
			}
			r.Expired()
			ticking = false
		}
		r.loop.mustTurn(t)
		if got := r.Unreaped(); got != 0 {
			t.Errorf("%d frames stay out", got)
		}
	})
}
