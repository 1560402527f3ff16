// SPDX-License-Identifier: Apache-2.0

package napi

import (
	"runtime"
	"testing"
)

func TestNapiIsDisabledUntilItIsAdded(t *testing.T) {
	l, _ := newTestLoop(t, LoopConfig{})
	n := New("eth0/0", &work{}, 0)
	if n.ScheduleCheck() {
		t.Fatal("an instance without a loop was scheduled")
	}
	n.Disable() // has no loop to wait for
	n.Enable()
	if n.Schedule(SourceKick); n.IsScheduled() {
		t.Fatal("an instance without a loop was enabled")
	}
	if index := l.Add(n); index != 0 {
		t.Errorf("index %d, want 0", index)
	}
	if !n.IsScheduled() {
		t.Error("not scheduled by being added")
	}
	if n.Name() != "eth0/0" || n.Weight() != DefaultWeight {
		t.Errorf("name %q weight %d", n.Name(), n.Weight())
	}
}

func TestNapiStateFollowsTheTable(t *testing.T) {
	const (
		s = stateSched
		m = stateMissed
		d = stateDisable
	)
	type move func(state) (state, bool)
	for _, row := range []struct {
		name     string
		move     move
		from, to state
		ok       bool
	}{
		{"schedule-idle", onSchedule, 0, s, true},
		{"schedule-scheduled", onSchedule, s, s | m, false},
		{"schedule-missed", onSchedule, s | m, s | m, false},
		{"schedule-disabled", onSchedule, d, d, false},
		{"schedule-disabled-in-poll", onSchedule, s | d, s | d, false},
		{"complete", onComplete, s, 0, true},
		{"complete-missed", onComplete, s | m, s, false},
		{"complete-disabled", onComplete, s | d, d, true},
		{"complete-missed-disabled", onComplete, s | m | d, d, true},
		{"drop-disabled", onDrop, s | d, d, true},
		{"drop-missed-disabled", onDrop, s | m | d, d, true},
		{"drop-enabled-again", onDrop, s | m, s | m, false},
		{"disable-idle", onDisable, 0, d, true},
		{"disable-in-poll", onDisable, s | m, s | m | d, true},
		{"enable", onEnable, d, 0, true},
		{"enable-in-poll", onEnable, s | d, s, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			if to, ok := row.move(row.from); to != row.to || ok != row.ok {
				t.Errorf("from %03b: got %03b %v, want %03b %v", row.from, to, ok, row.to, row.ok)
			}
		})
	}
}

func TestNapiScheduleDuringPollIsPolledOnceMore(t *testing.T) {
	l, _ := newTestLoop(t, LoopConfig{})
	p := &work{}
	n := New("n", p, 0)
	p.onPoll = func(int) {
		if p.polls.Load() == 1 {
			n.Schedule(SourceKick) // sets MISSED
			n.Schedule(SourceKick) // changes nothing
		}
	}
	l.Add(n)
	l.mustTurn(t)
	if got := p.polls.Load(); got != 2 {
		t.Errorf("%d polls, want 2", got)
	}
	if n.IsScheduled() {
		t.Error("still scheduled")
	}
	if got := n.Stats().Schedules; got != [sources]uint64{SourceKick: 1, SourceMissed: 1} {
		t.Errorf("schedules by source %v", got)
	}
}

func TestNapiEnableMakesUpForWhatWasDropped(t *testing.T) {
	l, _ := newTestLoop(t, LoopConfig{})
	p := &work{pending: true}
	n := New("n", p, 0)
	l.Add(n)
	l.mustTurn(t)

	n.Disable()
	p.supply.Store(3)
	n.Schedule(SourceIRQ)
	l.gather()
	if !l.list.empty() || n.IsScheduled() {
		t.Fatal("a disabled instance was scheduled")
	}
	n.Enable()
	l.mustTurn(t)
	if got := p.handled.Load(); got != 3 {
		t.Errorf("%d packets handled after enabling, want 3", got)
	}
}

func TestNapiDisabledOnTheListIsDroppedAndNotPolled(t *testing.T) {
	l, _ := newTestLoop(t, LoopConfig{})
	p := &work{}
	n := New("n", p, 0)
	l.Add(n) // on the inbox
	n.Disable()
	n.Disable()
	l.mustTurn(t)
	if p.polls.Load() != 0 || n.IsScheduled() {
		t.Errorf("%d polls, scheduled %v", p.polls.Load(), n.IsScheduled())
	}
	n.Enable()
	l.mustTurn(t)
	if p.polls.Load() != 1 {
		t.Errorf("%d polls after enabling, want 1", p.polls.Load())
	}
}

func TestNapiDisableWaitsForARunningPoll(t *testing.T) {
	l, _ := newTestLoop(t, LoopConfig{})
	inPoll, letGo := make(chan struct{}), make(chan struct{})
	p := &work{}
	p.onPoll = func(int) {
		close(inPoll)
		<-letGo
	}
	n := New("n", p, 0)
	l.Add(n)
	startLoop(t, l)
	receive(t, inPoll)

	disabled := make(chan struct{})
	go func() {
		n.Disable()
		close(disabled)
	}()
	// Disable has set its bit, so it is waiting now or about to.
	for n.load()&stateDisable == 0 {
		runtime.Gosched()
	}
	for range 1000 {
		runtime.Gosched()
		select {
		case <-disabled:
			t.Fatal("Disable returned during the poll")
		default:
		}
	}
	close(letGo)
	receive(t, disabled)
}

func TestNapiDisableDoesNotWaitForASleepingOrStoppedLoop(t *testing.T) {
	l, w := newTestLoop(t, LoopConfig{Mode: Interrupt})
	n := New("n", &work{}, 0)
	l.Add(n)
	done := make(chan error, 1)
	go func() { done <- l.Run() }()
	w.awaitBlocks(1)
	n.Disable() // hangs if it waits
	n.Enable()
	w.awaitBlocks(2)
	l.Stop()
	if err := receive(t, done); err != nil {
		t.Fatal(err)
	}
	n.Schedule(SourceKick)
	n.Disable()
}

func TestLoopRemoveFreesTheSlotForTheNext(t *testing.T) {
	l, w := newTestLoop(t, LoopConfig{})
	a, b, c := New("a", &work{}, 0), New("b", &work{}, 0), New("c", &work{}, 0)
	if l.Add(a) != 0 || l.Add(b) != 1 {
		t.Fatal("indices are not dense")
	}
	l.Remove(a)
	l.mustTurn(t) // b's first poll; a is dropped
	w.post(Event{Napi: 0, Source: SourceIRQ})
	w.post(Event{Napi: 7, Source: SourceIRQ})
	w.post(Event{Napi: -5, Source: SourceIRQ})
	l.mustTurn(t) // events of instances that are not there
	if a.stats.Polls != 0 || b.stats.Polls != 1 {
		t.Errorf("polls a %d b %d, want 0 and 1", a.stats.Polls, b.stats.Polls)
	}
	if index := l.Add(c); index != 0 {
		t.Errorf("index %d, want the free slot 0", index)
	}
}

func TestNamesAreThoseOfTheMetrics(t *testing.T) {
	for got, want := range map[string]string{
		SourceIRQ.String(): "irq", SourceTimer.String(): "timer",
		SourceMissed.String(): "missed", SourceKick.String(): "kick",
		Adaptive.String(): "adaptive", Interrupt.String(): "interrupt", Busy.String(): "busy",
		ArmIdle.String(): "idle", ArmAlways.String(): "always",
		Source(9).String() + Mode(9).String() + ArmRule(9).String(): "unknownunknownunknown",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
