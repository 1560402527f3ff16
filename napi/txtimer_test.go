// SPDX-License-Identifier: Apache-2.0

package napi

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fakeTimer is a Timer that expires when the test says so.
type fakeTimer struct {
	starts atomic.Int64
	last   atomic.Int64 // the delay of the last start
	err    error
}

func (f *fakeTimer) Start(d time.Duration) error {
	f.starts.Add(1)
	f.last.Store(int64(d))
	return f.err
}

// timerRig is an idle instance with its timer on a loop whose turns the test takes.
type timerRig struct {
	loop *Loop
	napi *Napi
	work *work
	fake *fakeTimer
	*TxTimer
}

func newTimerRig(t testing.TB, cfg TxTimerConfig) *timerRig {
	t.Helper()
	r := &timerRig{work: &work{}, fake: &fakeTimer{}}
	r.loop, _ = newTestLoop(t, LoopConfig{Mode: Busy, Clock: (&manualClock{}).read}) // never blocks
	r.napi = New("n", r.work, 0)
	tt, err := NewTxTimer(r.napi, r.fake, cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.TxTimer = tt
	r.loop.Add(r.napi)
	r.loop.mustTurn(t)
	return r
}

func (r *timerRig) check(t testing.TB, want TxTimerStats) {
	t.Helper()
	if got := r.Stats(); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := r.Stats().Syscalls; got != uint64(r.fake.starts.Load()) {
		t.Errorf("%d system calls counted, %d made", got, r.fake.starts.Load())
	}
}

var usual = TxTimerConfig{Delay: DefaultTxDelay, Frames: DefaultTxFrames}

func TestTxTimerStartsOnceForManyTransmits(t *testing.T) {
	r := newTimerRig(t, usual)
	for range 10 {
		r.Sent(2)
	}
	r.check(t, TxTimerStats{Armed: 1, Running: true, Syscalls: 1, Unreaped: 20})
	if got := time.Duration(r.fake.last.Load()); got != DefaultTxDelay {
		t.Errorf("started with %v", got)
	}
}

func TestTxTimerExpiryOnlySchedules(t *testing.T) {
	r := newTimerRig(t, usual)
	r.Sent(1)
	r.Expired()
	if !r.napi.IsScheduled() || r.work.polls.Load() != 1 {
		t.Errorf("scheduled %v after %d polls, want scheduled and not polled again", r.napi.IsScheduled(), r.work.polls.Load())
	}
	r.check(t, TxTimerStats{Armed: 1, Fired: 1, Syscalls: 1, Unreaped: 1})
	r.work.onPoll = func(int) { r.Reaped(1) }
	r.loop.mustTurn(t)
	r.check(t, TxTimerStats{Armed: 1, Fired: 1, Syscalls: 1})
	if got := r.napi.Stats().Schedules[SourceTimer]; got != 1 {
		t.Errorf("%d schedules by the timer, want 1", got)
	}
}

func TestTxTimerIsSkippedAndCancelledWhileScheduled(t *testing.T) {
	r := newTimerRig(t, usual)
	r.Sent(1)
	r.napi.Schedule(SourceIRQ)
	r.Sent(1)
	r.Sent(100) // however many: the poll will reap
	r.check(t, TxTimerStats{Armed: 1, Cancelled: 1, Skipped: 2, Syscalls: 1, Unreaped: 102})

	r.work.onPoll = func(int) { r.Reaped(102) }
	r.loop.mustTurn(t)
	polls := r.work.polls.Load()
	r.Expired() // the kernel did not hear of the cancellation
	if r.napi.IsScheduled() || r.work.polls.Load() != polls {
		t.Error("a cancelled timer scheduled the instance")
	}
	r.check(t, TxTimerStats{Armed: 1, Cancelled: 1, Skipped: 2, Late: 1, Syscalls: 1})
}

func TestTxTimerCancelledAndNeededAgainCostsNoSystemCall(t *testing.T) {
	r := newTimerRig(t, usual)
	r.work.onPoll = func(int) { r.Reaped(r.Unreaped()) }
	for range 1000 {
		r.Sent(1) // idle: armed
		r.napi.Schedule(SourceIRQ)
		r.Sent(1) // scheduled: cancelled
		r.loop.mustTurn(t)
	}
	r.check(t, TxTimerStats{Armed: 1000, Cancelled: 1000, Skipped: 1000, Syscalls: 1})
	r.Sent(1)
	r.Expired() // early, and that does no harm
	r.check(t, TxTimerStats{Armed: 1001, Fired: 1, Cancelled: 1000, Skipped: 1000, Syscalls: 1, Unreaped: 1})
}

func TestTxTimerSchedulesAtOnceAtTooManyFrames(t *testing.T) {
	r := newTimerRig(t, usual)
	r.Sent(24)
	if r.napi.IsScheduled() {
		t.Fatal("scheduled at 24 frames")
	}
	r.Sent(1)
	if !r.napi.IsScheduled() {
		t.Fatal("not scheduled at 25 frames")
	}
	r.check(t, TxTimerStats{Armed: 1, Running: true, ByFrames: 1, Syscalls: 1, Unreaped: 25})
}

func TestTxTimerIsArmedForWhatAPollLeftInTheRing(t *testing.T) {
	r := newTimerRig(t, usual)
	r.napi.Schedule(SourceIRQ)
	r.Sent(5)
	r.work.onPoll = func(int) { r.Reaped(2) }
	r.loop.mustTurn(t)
	r.check(t, TxTimerStats{Armed: 1, Running: true, Skipped: 1, Syscalls: 1, Unreaped: 3})
}

func TestTxTimerBacksOffWhileNothingComesHome(t *testing.T) {
	r := newTimerRig(t, usual)
	r.Sent(1)
	var delays []time.Duration
	for range 8 {
		r.Expired()
		r.loop.mustTurn(t) // reaps nothing, so the timer is armed again
		delays = append(delays, time.Duration(r.fake.last.Load())/time.Millisecond)
	}
	for i, want := range []time.Duration{5, 10, 20, 40, 80, 100, 100, 100} {
		if delays[i] != want {
			t.Fatalf("delays %d ms, want 5 10 20 40 80 100 100 100", delays)
		}
	}
	r.Reaped(1)
	r.Expired()
	r.loop.mustTurn(t)
	r.Sent(1)
	if got := time.Duration(r.fake.last.Load()); got != DefaultTxDelay {
		t.Errorf("%v after a frame came home, want %v", got, DefaultTxDelay)
	}
}

func TestTxTimerAlwaysArmsOnEveryTransmit(t *testing.T) {
	r := newTimerRig(t, TxTimerConfig{Delay: DefaultTxDelay, Frames: DefaultTxFrames, Rule: ArmAlways})
	r.Sent(1)
	r.Sent(1)
	r.napi.Schedule(SourceIRQ)
	r.Sent(1)
	r.check(t, TxTimerStats{Armed: 3, Cancelled: 2, Running: true, Syscalls: 3, Unreaped: 3})
	r.Expired()
	r.Expired() // of an earlier start
	r.check(t, TxTimerStats{Armed: 3, Fired: 1, Cancelled: 2, Late: 1, Syscalls: 3, Unreaped: 3})
	r.work.onPoll = func(int) { r.Reaped(r.Unreaped()) }
	r.loop.mustTurn(t)
	r.Sent(25)
	if !r.napi.IsScheduled() {
		t.Error("25 frames did not schedule")
	}
}

func TestTxTimerOffNeverStartsButFramesStillSchedule(t *testing.T) {
	for _, rule := range []ArmRule{ArmIdle, ArmAlways} {
		r := newTimerRig(t, TxTimerConfig{Frames: 25, Rule: rule})
		r.timer = nil // never called
		r.Sent(24)
		r.Sent(0)
		if r.napi.IsScheduled() {
			t.Errorf("%v: scheduled at 24 frames", rule)
		}
		r.Sent(1)
		if !r.napi.IsScheduled() {
			t.Errorf("%v: not scheduled at 25 frames", rule)
		}
		r.check(t, TxTimerStats{ByFrames: 1, Unreaped: 25})
	}
}

func TestTxTimerThatCannotStartIsNotRunning(t *testing.T) {
	r := newTimerRig(t, usual)
	r.fake.err = errors.New("closed")
	r.Sent(1)
	r.Sent(1)
	r.check(t, TxTimerStats{Armed: 2, Cancelled: 2, Syscalls: 2, Failed: 2, Unreaped: 2})
	r.fake.err = nil
	r.Sent(1)
	r.check(t, TxTimerStats{Armed: 3, Cancelled: 2, Running: true, Syscalls: 3, Failed: 2, Unreaped: 3})
}

func TestTxTimerExpiryOfADisabledInstanceIsMadeUpForByEnable(t *testing.T) {
	r := newTimerRig(t, usual)
	r.Sent(1)
	r.napi.Disable()
	r.Expired()
	if r.napi.IsScheduled() {
		t.Fatal("a disabled instance was scheduled")
	}
	r.work.onPoll = func(int) { r.Reaped(1) }
	r.napi.Enable()
	r.loop.mustTurn(t)
	r.check(t, TxTimerStats{Armed: 1, Fired: 1, Syscalls: 1})
}

func TestTxTimerArmedByTheEndOfAPollIsNotCancelledForGood(t *testing.T) {
	r := newTimerRig(t, usual)
	r.napi.Schedule(SourceIRQ)
	unreaped, scheduled := r.count(1) // a worker sees the instance scheduled
	r.loop.mustTurn(t)                // the poll ends and arms for what it has left
	r.see(unreaped, scheduled)        // the worker cancels what it thinks superfluous
	r.check(t, TxTimerStats{Armed: 2, Cancelled: 1, Running: true, Skipped: 1, Syscalls: 1, Unreaped: 1})
}

func TestTxTimerStatsWaitForAnExpiryThatIsHalfCounted(t *testing.T) {
	r := newTimerRig(t, usual)
	r.Sent(1)
	r.word.Store(uint64(r.load().to(txFiring))) // the loop is inside Expired
	asked, answer := make(chan struct{}), make(chan TxTimerStats, 1)
	go func() {
		close(asked)
		answer <- r.Stats()
	}()
	receive(t, asked)
	for range 1000 {
		runtime.Gosched()
	}
	r.fired.Add(1)
	r.word.Store(uint64(r.load().to(txIdle)))
	if s := receive(t, answer); s.Armed != 1 || s.Fired != 1 {
		t.Errorf("armed %d fired %d, want 1 and 1", s.Armed, s.Fired)
	}
}

func TestNewTxTimerRefusesWhatMakesNoSense(t *testing.T) {
	l, _ := newTestLoop(t, LoopConfig{})
	added, twice := New("added", &work{}, 0), New("twice", &work{}, 0)
	l.Add(added)
	if _, err := NewTxTimer(twice, &fakeTimer{}, usual); err != nil {
		t.Fatal(err)
	}
	if _, err := NewTxTimer(New("n", &work{}, 0), nil, TxTimerConfig{}); err != nil {
		t.Errorf("no timer needed: %v", err)
	}
	for name, f := range map[string]func() (*TxTimer, error){
		"added":    func() (*TxTimer, error) { return NewTxTimer(added, &fakeTimer{}, usual) },
		"twice":    func() (*TxTimer, error) { return NewTxTimer(twice, &fakeTimer{}, usual) },
		"no-timer": func() (*TxTimer, error) { return NewTxTimer(New("n", &work{}, 0), nil, usual) },
		"too-long": func() (*TxTimer, error) {
			return NewTxTimer(New("n", &work{}, 0), &fakeTimer{}, TxTimerConfig{Delay: MaxTxDelay + 1})
		},
		"negative": func() (*TxTimer, error) {
			return NewTxTimer(New("n", &work{}, 0), &fakeTimer{}, TxTimerConfig{Delay: -1})
		},
		"frames": func() (*TxTimer, error) {
			return NewTxTimer(New("n", &work{}, 0), &fakeTimer{}, TxTimerConfig{Frames: -1})
		},
		"arm-rules": func() (*TxTimer, error) {
			return NewTxTimer(New("n", &work{}, 0), &fakeTimer{}, TxTimerConfig{Rule: armRules})
		},
	} {
		if _, err := f(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestTxTimerIdentityHoldsInEveryAnswer reads the counters while several workers send,
// the loop polls, and a timer expires at odd moments.
func TestTxTimerIdentityHoldsInEveryAnswer(t *testing.T) {
	for _, rule := range []ArmRule{ArmIdle, ArmAlways} {
		t.Run(rule.String(), func(t *testing.T) {
			r := newTimerRig(t, TxTimerConfig{Delay: DefaultTxDelay, Frames: DefaultTxFrames, Rule: rule})
			r.work.onPoll = func(int) { r.Reaped(r.Unreaped()) }
			const senders, transmits = 3, 20000
			var wg sync.WaitGroup
			for range senders {
				wg.Go(func() {
					for range transmits {
						r.Sent(1)
					}
				})
			}
			sent := make(chan struct{})
			go func() { wg.Wait(); close(sent) }()
			read := make(chan struct{})
			go func() {
				defer close(read)
				var last TxTimerStats
				for {
					s := r.Stats()
					checkIdentity(t, last, s)
					last = s
					select {
					case <-sent:
						return
					default:
					}
				}
			}()
			r.runUntil(t, sent)
			receive(t, read)
			checkIdentity(t, TxTimerStats{}, r.Stats())
		})
	}
}

func checkIdentity(t testing.TB, last, s TxTimerStats) {
	running := uint64(0)
	if s.Running {
		running = 1
	}
	if s.Armed != s.Fired+s.Cancelled+running {
		t.Errorf("armed %d != fired %d + cancelled %d + running %d", s.Armed, s.Fired, s.Cancelled, running)
	}
	if s.Armed < last.Armed || s.Fired < last.Fired || s.Cancelled < last.Cancelled {
		t.Errorf("a counter went back: %+v after %+v", s, last)
	}
}

// runUntil is the loop's thread: turns, and expiries of a timer that was started.
func (r *timerRig) runUntil(t testing.TB, done <-chan struct{}) {
	expired := r.fake.starts.Load()
	for {
		select {
		case <-done:
			return
		default:
		}
		r.loop.gather()
		if !r.loop.list.empty() {
			r.loop.round()
		}
		if starts := r.fake.starts.Load(); starts > expired && rand.IntN(4) == 0 {
			expired = starts
			r.Expired()
		}
	}
}
