// SPDX-License-Identifier: Apache-2.0

package napi

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// pollOrder records who is polled, in order.
type pollOrder struct{ names []string }

func (o *pollOrder) add(t testing.TB, l *Loop, name string, supply, weight int) *work {
	t.Helper()
	p := &work{pending: true, onPoll: func(int) { o.names = append(o.names, name) }}
	p.supply.Store(int64(supply))
	l.Add(New(name, p, weight))
	return p
}

func TestLoopPollsInTheOrderOfScheduling(t *testing.T) {
	l, _ := newTestLoop(t, LoopConfig{})
	var o pollOrder
	for _, name := range []string{"a", "b", "c", "d"} {
		o.add(t, l, name, 1, 0)
	}
	l.mustTurn(t)
	if want := []string{"a", "b", "c", "d"}; !slices.Equal(o.names, want) {
		t.Errorf("order %v, want %v", o.names, want)
	}
}

func TestLoopPutsAnInstanceThatUsedItsWeightAtTheTail(t *testing.T) {
	l, _ := newTestLoop(t, LoopConfig{Clock: (&manualClock{}).read})
	var o pollOrder
	o.add(t, l, "long", 3*64, 0)
	o.add(t, l, "b", 64+1, 0)
	o.add(t, l, "c", 1, 0)
	l.mustTurn(t)
	if want := []string{"long", "b", "c", "long", "b", "long", "long"}; !slices.Equal(o.names, want) {
		t.Errorf("order %v, want %v", o.names, want)
	}
	if got := l.Stats().Exhausted; got != 4 {
		t.Errorf("%d polls used their weight, want 4", got)
	}
}

func TestLoopLetsANewcomerPastAnInstanceThatNeverEnds(t *testing.T) {
	l, _ := newTestLoop(t, LoopConfig{Clock: (&manualClock{}).read})
	var o pollOrder
	o.add(t, l, "greedy", 1<<30, 0)
	quiet := o.add(t, l, "quiet", 0, 0)
	l.mustTurn(t)
	o.names = nil
	// A packet comes in while the greedy one is being polled.
	greedy := (*l.napis.Load())[0].poller.(*work)
	record := greedy.onPoll
	greedy.onPoll = func(budget int) { quiet.supply.Store(1); record(budget) }
	l.mustTurn(t)
	if want := []string{"greedy", "quiet", "greedy", "quiet"}; !slices.Equal(o.names[:4], want) {
		t.Errorf("order %v, want it to begin with %v", o.names, want)
	}
}

func TestLoopGivesEachGreedyInstanceTheSameShare(t *testing.T) {
	l, _ := newTestLoop(t, LoopConfig{Clock: (&manualClock{}).read})
	var o pollOrder
	pollers := []*work{o.add(t, l, "a", 1<<30, 0), o.add(t, l, "b", 1<<30, 0), o.add(t, l, "c", 1<<30, 0)}
	for range 300 {
		l.mustTurn(t)
	}
	for i, p := range pollers {
		if diff := p.handled.Load() - pollers[0].handled.Load(); max(diff, -diff) > DefaultWeight {
			t.Errorf("instance %d is %d packets apart from instance 0", i, diff)
		}
	}
}

func TestLoopEndsARoundAtThePacketBudget(t *testing.T) {
	l, _ := newTestLoop(t, LoopConfig{Clock: (&manualClock{}).read})
	var o pollOrder
	p := o.add(t, l, "a", 1000, 0)
	l.mustTurn(t)
	// Whole polls only: the fifth one crosses 300.
	if got := p.handled.Load(); got != 5*DefaultWeight {
		t.Errorf("%d packets in the round, want %d", got, 5*DefaultWeight)
	}
	if s := l.Stats(); s.TimeSqueeze != 1 || s.Rounds != 1 {
		t.Errorf("time squeeze %d in %d rounds, want 1 in 1", s.TimeSqueeze, s.Rounds)
	}
	for range 3 {
		l.mustTurn(t)
	}
	if got := p.handled.Load(); got != 1000 {
		t.Errorf("%d packets in the end, want 1000", got)
	}
	if got := l.Stats().TimeSqueeze; got != 3 {
		t.Errorf("time squeeze %d, want 3: the fourth round ended by itself", got)
	}
}

func TestLoopEndsARoundAtTheTimeLimit(t *testing.T) {
	clock := &manualClock{step: int64(700 * time.Microsecond)} // a poll takes that long
	l, _ := newTestLoop(t, LoopConfig{Clock: clock.read})
	var o pollOrder
	o.add(t, l, "a", 1000, 1)
	l.mustTurn(t)
	if len(o.names) != 3 {
		t.Errorf("%d polls in the round, want 3 (2.1 ms)", len(o.names))
	}
	if got := l.Stats().TimeSqueeze; got != 1 {
		t.Errorf("time squeeze %d, want 1", got)
	}
}

func TestLoopDoesNotChargeEmptyPolls(t *testing.T) {
	l, _ := newTestLoop(t, LoopConfig{Clock: (&manualClock{}).read, Budget: 1})
	for range 8 {
		l.Add(New("n", &work{}, 0))
	}
	l.mustTurn(t)
	if s := l.Stats(); s.Polls != 8 || s.EmptyPolls != 8 || s.TimeSqueeze != 0 {
		t.Errorf("polls %d, empty %d, time squeeze %d; want 8, 8, 0", s.Polls, s.EmptyPolls, s.TimeSqueeze)
	}
}

func TestLoopReadsTheClockOncePerPoll(t *testing.T) {
	clock := &manualClock{step: 1}
	l, _ := newTestLoop(t, LoopConfig{Clock: clock.read})
	var o pollOrder
	o.add(t, l, "a", 1000, 0)
	before := clock.reads
	l.mustTurn(t)
	if got := clock.reads - before; got != len(o.names) {
		t.Errorf("%d readings in %d polls", got, len(o.names))
	}
}

func TestLoopSplitsTimeIntoBusyAndIdle(t *testing.T) {
	clock := &manualClock{step: 10}
	l, w := newTestLoop(t, LoopConfig{Clock: clock.read, Mode: Interrupt, TimeLimit: time.Hour, EventInterval: time.Hour})
	var o pollOrder
	o.add(t, l, "a", 64+1, 0)
	l.mustTurn(t) // two polls with packets
	w.post(Event{Napi: Doorbell})
	l.mustTurn(t) // a sleep
	s := l.Stats()
	if s.BusyNanos != 20 || s.IdleNanos != 10 {
		t.Errorf("busy %d idle %d, want 20 and 10", s.BusyNanos, s.IdleNanos)
	}
	if s.Sleeps != 1 || s.Wakeups != 1 {
		t.Errorf("sleeps %d wakeups %d, want 1 and 1", s.Sleeps, s.Wakeups)
	}
}

func TestLoopInterruptModeSleepsAsSoonAsIdle(t *testing.T) {
	l, w := newTestLoop(t, LoopConfig{Mode: Interrupt})
	p := &work{pending: true}
	l.Add(New("n", p, 0))
	startLoop(t, l)
	for i := range 100 {
		w.awaitBlocks(i + 1)
		p.supply.Store(1)
		w.post(Event{Napi: 0, Source: SourceIRQ})
	}
	w.awaitBlocks(101)
	if got := p.handled.Load(); got != 100 {
		t.Errorf("%d packets, want 100", got)
	}
}

func TestLoopAdaptiveModeLooksOnForTheWindow(t *testing.T) {
	clock := &manualClock{}
	yields, sleeps := 0, 0
	l, w := newTestLoop(t, LoopConfig{
		Clock: clock.read, AdaptiveWindow: 100, EventInterval: time.Hour,
		Yield:       func() { yields++; clock.now += 10 },
		BeforeSleep: func() { sleeps++ },
	})
	var o pollOrder
	p := o.add(t, l, "a", 1, 0)
	l.mustTurn(t) // the packet
	for range 5 {
		l.mustTurn(t)
	}
	p.supply.Store(1)
	l.mustTurn(t) // another one, found without an event
	if len(o.names) != 2 {
		t.Fatalf("%d polls, want 2", len(o.names))
	}
	for range 10 {
		l.mustTurn(t)
	}
	if yields != 15 || sleeps != 0 {
		t.Fatalf("%d yields, %d sleeps; want 15 and none within the window", yields, sleeps)
	}
	w.post(Event{Napi: Doorbell})
	l.mustTurn(t)
	if yields != 15 || sleeps != 1 {
		t.Errorf("%d yields, %d sleeps; want no more yields and one sleep after the window", yields, sleeps)
	}
	if got := l.Stats().Spins; got != 15 {
		t.Errorf("%d spins, want 15", got)
	}
}

func TestLoopAdaptiveModeDoesNotLookOnAfterAnEmptyPoll(t *testing.T) {
	clock := &manualClock{now: 1 << 40}
	l, w := newTestLoop(t, LoopConfig{Clock: clock.read})
	l.now = clock.now
	l.Add(New("n", &work{}, 0))
	l.mustTurn(t) // an empty poll
	w.post(Event{Napi: Doorbell})
	l.mustTurn(t)
	if s := l.Stats(); s.Sleeps != 1 || s.Spins != 0 {
		t.Errorf("sleeps %d spins %d, want 1 and 0", s.Sleeps, s.Spins)
	}
}

func TestLoopAdaptiveModeSleepsWhileAnotherThreadNeedsTheCPU(t *testing.T) {
	clock := &manualClock{}
	l, w := newTestLoop(t, LoopConfig{
		Clock: clock.read, EventInterval: time.Hour,
		Yield: func() { clock.now += contendedNanos },
	})
	var o pollOrder
	p := o.add(t, l, "a", 1, 0)
	expect := func(spins, contended, sleeps uint64) {
		t.Helper()
		if s := l.Stats(); s.Spins != spins || s.Contended != contended || s.Sleeps != sleeps {
			t.Fatalf("spins %d contended %d sleeps %d, want %d %d %d", s.Spins, s.Contended, s.Sleeps, spins, contended, sleeps)
		}
	}
	l.mustPoll(t, p)
	l.mustTurn(t)
	expect(1, 0, 0)
	w.post(Event{Napi: Doorbell})
	l.mustTurn(t) // the other thread ran and nothing came
	expect(1, 1, 1)
	for want := range uint64(3) {
		l.mustPoll(t, p)
		w.post(Event{Napi: Doorbell})
		l.mustTurn(t) // sleeps at once
		expect(1, 1, 2+want)
	}
	clock.now += contendedPause
	l.mustPoll(t, p)
	l.mustTurn(t)
	expect(2, 1, 4)
}

func TestLoopAdaptiveModeLooksOnIfTheOtherThreadBroughtWork(t *testing.T) {
	clock := &manualClock{}
	var p *work
	l, _ := newTestLoop(t, LoopConfig{
		Clock: clock.read, EventInterval: time.Hour,
		Yield: func() { clock.now += contendedNanos; p.supply.Store(1) }, // the device's softirq
	})
	var o pollOrder
	p = o.add(t, l, "a", 1, 0)
	for range 100 {
		l.mustTurn(t) // polls
		l.mustTurn(t) // spins
	}
	if s := l.Stats(); s.Packets != 100 || s.Spins != 100 || s.Contended != 0 || s.Sleeps != 0 {
		t.Errorf("packets %d spins %d contended %d sleeps %d, want 100 100 0 0", s.Packets, s.Spins, s.Contended, s.Sleeps)
	}
}

func TestLoopAwakeSeesEventsOnceAnInterval(t *testing.T) {
	for _, mode := range []Mode{Busy, Adaptive, Interrupt} {
		t.Run(mode.String(), func(t *testing.T) {
			clock := &manualClock{step: int64(time.Microsecond)}
			rounds := 0
			l, w := newTestLoop(t, LoopConfig{Clock: clock.read, Mode: mode, EndOfRound: func() { rounds++ }})
			p := &work{pending: true}
			if mode != Busy {
				p.supply.Store(1 << 30)
			}
			l.Add(New("n", p, 0))
			for clock.now < int64(10*time.Millisecond) {
				l.mustTurn(t)
			}
			interval := DefaultEventInterval
			if mode == Busy {
				interval = 100 * time.Microsecond // it has no packets
			}
			// A turn is 5 µs with packets, 1 µs without.
			if most := int(10 * time.Millisecond / interval); w.looks > most || w.looks < most*9/10 {
				t.Errorf("%d looks in 10 ms, want one each %v", w.looks, interval)
			}
			if w.blocks != 0 {
				t.Errorf("blocked %d times", w.blocks)
			}
			if rounds < w.looks {
				t.Errorf("%d ends of round, want at least one each interval", rounds)
			}
		})
	}
}

func TestLoopGivesWayBeforeTheRuntimeTakesItsPlace(t *testing.T) {
	clock := &manualClock{step: int64(50 * time.Microsecond)}
	l, _ := newTestLoop(t, LoopConfig{Clock: clock.read, Mode: Busy})
	for range 1000 {
		l.mustTurn(t)
		if since := l.now - l.gaveWay; since > int64(9*time.Millisecond) {
			t.Fatalf("kept its place for %v", time.Duration(since))
		}
	}
}

func TestLoopDoesNotRingItselfAndRingsASleeperOnce(t *testing.T) {
	l, w := newTestLoop(t, LoopConfig{Mode: Interrupt})
	a, b := New("a", &work{}, 0), New("b", &work{}, 0)
	l.Add(a)
	l.Add(b)
	l.mustTurn(t)
	a.Schedule(SourceKick) // awake: no doorbell
	if len(w.queue) != 0 {
		t.Fatal("an awake loop was rung")
	}
	l.mustTurn(t)

	l.sleeping.Store(1) // as if it slept
	a.Schedule(SourceKick)
	b.Schedule(SourceKick)
	a.Schedule(SourceKick)
	if len(w.queue) != 1 {
		t.Errorf("%d doorbells for one sleep, want 1", len(w.queue))
	}
}

func TestLoopLooksOnceMoreBeforeItSleeps(t *testing.T) {
	for _, c := range []struct {
		name   string
		happen func(l *Loop, n *Napi, p *work)
	}{
		{"packet-after-the-last-look", func(_ *Loop, _ *Napi, p *work) { p.supply.Store(1) }},
		{"schedule-before-the-announcement", func(_ *Loop, n *Napi, _ *work) { n.Schedule(SourceKick) }},
		{"stop-before-the-announcement", func(l *Loop, _ *Napi, _ *work) { l.Stop() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l *Loop
			p := &work{pending: true}
			n := New("n", p, 0)
			cfg := LoopConfig{Mode: Interrupt}
			cfg.BeforeSleep = func() { c.happen(l, n, p) }
			l, w := newTestLoop(t, cfg)
			l.Add(n)
			l.mustTurn(t)
			l.mustTurn(t)
			if w.blocks != 0 || l.stats.Sleeps != 0 {
				t.Error("slept although there was something to do")
			}
			if l.sleeping.Load() != 0 {
				t.Error("still announced as sleeping")
			}
		})
	}
}

func TestLoopIgnoresAnEventOfAScheduledInstance(t *testing.T) {
	l, _ := newTestLoop(t, LoopConfig{})
	p := &work{}
	n := New("n", p, 0)
	l.Add(n)
	l.dispatch([]Event{{Napi: 0, Source: SourceIRQ}})
	l.mustTurn(t)
	if got := p.polls.Load(); got != 1 {
		t.Errorf("%d polls, want 1: the event is older than the poll", got)
	}
}

func TestLoopStopEndsRunWhereverItIs(t *testing.T) {
	for _, mode := range []Mode{Interrupt, Adaptive, Busy} {
		t.Run(mode.String(), func(t *testing.T) {
			l, _ := newTestLoop(t, LoopConfig{Mode: mode})
			l.Add(New("n", &work{}, 0))
			turns := make(chan struct{}, 1)
			l.cfg.EndOfRound = func() {
				select {
				case turns <- struct{}{}:
				default:
				}
			}
			done := make(chan error, 1)
			go func() { done <- l.Run() }()
			receive(t, turns)
			l.Stop()
			l.Stop()
			if err := receive(t, done); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("before-run", func(t *testing.T) {
		l, _ := newTestLoop(t, LoopConfig{})
		l.Stop()
		if err := l.Run(); err != nil {
			t.Error(err)
		}
	})
}

func TestLoopRunReturnsTheWaitersError(t *testing.T) {
	broken := errors.New("broken")
	for _, mode := range []Mode{Interrupt, Busy} {
		l, w := newTestLoop(t, LoopConfig{Mode: mode})
		w.fail(broken)
		if err := l.Run(); !errors.Is(err, broken) {
			t.Errorf("%v: got %v, want %v", mode, err, broken)
		}
		if l.turn.Load()&1 != 0 {
			t.Errorf("%v: the loop left its turn open", mode)
		}
	}
}

func TestNewLoopRefusesWhatMakesNoSense(t *testing.T) {
	w := newQueueWaiter()
	for name, cfg := range map[string]LoopConfig{
		"no-waiter":       {},
		"mode":            {Waiter: w, Mode: modes},
		"negative-budget": {Waiter: w, Budget: -1},
		"negative-window": {Waiter: w, AdaptiveWindow: -1},
		"negative-limit":  {Waiter: w, TimeLimit: -1},
		"negative-look":   {Waiter: w, EventInterval: -1},
	} {
		if _, err := NewLoop(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
