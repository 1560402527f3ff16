// SPDX-License-Identifier: Apache-2.0

package napi

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// DefaultTxDelay is how long sent frames may lie unreaped. Smaller: more timer
	// system calls and wake-ups. Larger: frames are missing elsewhere for longer, and
	// at 25 frames the timer no longer decides anyway.
	DefaultTxDelay = 5 * time.Millisecond
	// MaxTxDelay bounds the delay, also the one a timer backs off to. Larger: a TX
	// ring that stalled and recovered would be noticed too late.
	MaxTxDelay = 100 * time.Millisecond
	// DefaultTxFrames is how many unreaped frames schedule the instance at once.
	// Smaller: polls that reap little. Larger: more frames are away from their pool.
	DefaultTxFrames = 25
)

// Timer is a one-shot timer whose expiry reaches the loop as an Event with
// SourceTimer. Start replaces what was started before. Any goroutine.
type Timer interface {
	Start(d time.Duration) error
}

// ArmRule says when frames handed to a TX ring start the timer.
type ArmRule uint8

const (
	ArmIdle   ArmRule = iota // only if the instance is not scheduled and the timer not running
	ArmAlways                // on every transmit, with a system call each; for measuring
	armRules
)

// String returns the rule's name as the configuration knows it.
func (r ArmRule) String() string {
	names := [armRules]string{"idle", "always"}
	if r < armRules {
		return names[r]
	}
	return "unknown"
}

// TxTimerConfig is what a TxTimer is made of.
type TxTimerConfig struct {
	Delay  time.Duration // 0 = no timer; usually DefaultTxDelay
	Frames int           // 0 = no limit; usually DefaultTxFrames
	Rule   ArmRule
}

// TxTimer makes sure that frames given to a TX ring are reaped although AF_XDP raises
// no event for a completion. It belongs to the instance that reaps the ring.
//
// The timer is cancelled without a system call: it is only marked, and what the kernel
// started runs on. If it is needed again before it expires, it is there already and
// merely comes early; if not, its expiry finds the mark and does nothing. So a timer
// costs one system call a delay at most, whatever the traffic does.
type TxTimer struct {
	napi   *Napi
	timer  Timer
	delay  time.Duration
	frames int64
	rule   ArmRule

	_ [cacheLine]byte
	// unreaped is how many frames lie in the ring or its completion ring.
	unreaped atomic.Int64
	word     atomic.Uint64 // a txWord
	// wait is the delay of the next start in nanoseconds, grown by backing off.
	// Written by the loop's thread only.
	wait atomic.Int64

	fired    atomic.Uint64 // written by the loop's thread only
	late     atomic.Uint64
	skipped  atomic.Uint64
	byFrames atomic.Uint64
	syscalls atomic.Uint64
	failed   atomic.Uint64

	reaped bool // Owner: the loop's thread. Whether frames came home since the last expiry.
}

// TxTimerStats are the counters of one timer.
//
// Invariant: Armed = Fired + Cancelled + (1 if Running).
type TxTimerStats struct {
	Armed     uint64
	Fired     uint64 // expiries that scheduled the instance
	Cancelled uint64 // no longer needed, or started anew by ArmAlways
	Skipped   uint64 // transmits that found the instance scheduled
	ByFrames  uint64 // transmits that scheduled it at once, too many frames being unreaped
	Late      uint64 // expiries of a timer that was cancelled: nothing was done
	Syscalls  uint64
	Failed    uint64 // system calls that were refused
	Running   bool
	Unreaped  int64
}

// NewTxTimer gives an instance its timer. Before Loop.Add. Without a delay, t may be nil.
func NewTxTimer(n *Napi, t Timer, cfg TxTimerConfig) (*TxTimer, error) {
	switch {
	case n.loop != nil || n.timer != nil:
		return nil, fmt.Errorf("napi %s: tx timer: too late, or a second one", n.name)
	case t == nil && cfg.Delay != 0:
		return nil, errors.New("napi " + n.name + ": tx timer: no timer")
	case cfg.Delay < 0 || cfg.Delay > MaxTxDelay:
		return nil, fmt.Errorf("napi %s: tx timer: delay %v: allowed is 0 to %v", n.name, cfg.Delay, MaxTxDelay)
	case cfg.Frames < 0:
		return nil, fmt.Errorf("napi %s: tx timer: %d frames: must not be negative", n.name, cfg.Frames)
	case cfg.Rule >= armRules:
		return nil, fmt.Errorf("napi %s: tx timer: arm rule %d: unknown", n.name, cfg.Rule)
	}
	tt := &TxTimer{napi: n, timer: t, delay: cfg.Delay, frames: int64(cfg.Frames), rule: cfg.Rule, reaped: true}
	tt.wait.Store(int64(cfg.Delay))
	n.timer = tt
	return tt, nil
}

// Sent says that so many more frames were handed to the TX ring. Any worker.
func (t *TxTimer) Sent(frames int) {
	if frames > 0 {
		t.see(t.count(frames))
	}
}

// count counts frames and then looks whether a poll will reap them.
//
// Ordering: counted before SCHED is read. Pairs with completed, which runs after SCHED was
// cleared and then reads the count: either the poll's end sees these frames and arms the
// timer, or SCHED is seen clear here.
func (t *TxTimer) count(frames int) (unreaped int64, scheduled bool) {
	unreaped = t.unreaped.Add(int64(frames))
	return unreaped, t.napi.IsScheduled()
}

// see decides who will reap what was counted.
func (t *TxTimer) see(unreaped int64, scheduled bool) {
	if t.rule == ArmAlways {
		t.arm(onRearm)
	}
	switch {
	case scheduled && t.rule == ArmIdle:
		t.skipped.Add(1)
		t.cancel()
	case scheduled:
	case t.frames > 0 && unreaped >= t.frames:
		t.byFrames.Add(1)
		t.napi.Schedule(SourceKick)
	case t.rule == ArmIdle:
		t.arm(onArm)
	}
}

// cancel disarms the timer of an instance that was seen scheduled.
//
// Ordering: SCHED is read again after the cancellation. The poll that was relied on may
// have ended since, and it may be its own arming, for frames it has left, that was
// cancelled. Either that is seen here, or the poll's end is still to come and will arm.
func (t *TxTimer) cancel() {
	if t.move(onCancel) && !t.napi.IsScheduled() {
		t.arm(onArm)
	}
}

// Reaped says that so many frames came home from the ring, or were given up with it. Each
// frame given to Sent is given to Reaped once: the timer goes on until they are even.
//
// Owner: the loop's thread.
func (t *TxTimer) Reaped(frames int) {
	if frames <= 0 {
		return
	}
	t.unreaped.Add(-int64(frames))
	t.reaped = true
	if t.wait.Load() != int64(t.delay) {
		t.wait.Store(int64(t.delay))
	}
}

// Unreaped returns how many frames were sent and not reaped.
func (t *TxTimer) Unreaped() int { return int(t.unreaped.Load()) }

// completed is called when a poll has ended and SCHED is clear: what the poll left in
// the ring is the timer's business again.
func (t *TxTimer) completed() {
	// Ordering: read after SCHED was cleared; pairs with Sent.
	if t.unreaped.Load() > 0 {
		t.arm(onArm)
	}
}

// Expired says that the timer's event was seen. It schedules the instance, unless the
// timer was cancelled meanwhile.
//
// Owner: the loop's thread.
func (t *TxTimer) Expired() {
	if !t.move(onExpire) {
		t.late.Add(1)
		return
	}
	// While the word says firing nobody else changes it, so that Stats never sees an
	// expiry half counted.
	t.fired.Add(1)
	// Ordering: idle before Schedule. Frames sent while the timer was firing did not arm
	// it; the poll comes after them.
	t.word.Store(uint64(t.load().to(txIdle)))
	t.backOff()
	t.napi.Schedule(SourceTimer)
}

// backOff doubles the delay if nothing came home since the last expiry: a TX ring that
// stands still (link down) must not wake the worker two hundred times a second.
func (t *TxTimer) backOff() {
	if !t.reaped {
		t.wait.Store(min(2*t.wait.Load(), int64(MaxTxDelay)))
	}
	t.reaped = false
}

// arm takes a transition that may start the kernel's timer, and starts it. If the kernel
// refuses, the frames wait for the next poll or the next transmit.
func (t *TxTimer) arm(step func(txWord) (txWord, bool)) {
	if t.delay == 0 || !t.move(step) {
		return
	}
	t.syscalls.Add(1)
	if t.timer.Start(time.Duration(t.wait.Load())) != nil {
		t.failed.Add(1)
		t.move(onRefused)
	}
}

// move applies one transition. One that changes nothing is only a look.
func (t *TxTimer) move(step func(txWord) (txWord, bool)) bool {
	for {
		old := t.load()
		next, ok := step(old)
		if next == old || t.word.CompareAndSwap(uint64(old), uint64(next)) {
			return ok
		}
	}
}

func (t *TxTimer) load() txWord { return txWord(t.word.Load()) }

// Stats returns the counters. Any goroutine; the invariant holds in every answer.
func (t *TxTimer) Stats() TxTimerStats {
	w, fired := t.snapshot()
	s := TxTimerStats{
		Fired:     fired,
		Cancelled: w.cancellations(),
		Running:   w.state() == txRunning,
		Skipped:   t.skipped.Load(),
		ByFrames:  t.byFrames.Load(),
		Late:      t.late.Load(),
		Syscalls:  t.syscalls.Load(),
		Failed:    t.failed.Load(),
		Unreaped:  t.unreaped.Load(),
	}
	s.Armed = s.Fired + s.Cancelled
	if s.Running {
		s.Armed++
	}
	return s
}

// snapshot returns a word and the expiries that belong to it: their count did not change
// around the word, and the word is not in the middle of one.
func (t *TxTimer) snapshot() (w txWord, fired uint64) {
	for {
		fired = t.fired.Load()
		w = t.load()
		if w.state() != txFiring && t.fired.Load() == fired {
			return w, fired
		}
		runtime.Gosched()
	}
}
