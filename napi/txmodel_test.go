// SPDX-License-Identifier: Apache-2.0

package napi

import "testing"

// The timer's model: two senders on other threads, the loop that reaps, the device that
// completes when it likes, the kernel's timer that expires when it likes, and one packet
// that schedules the instance at any moment. Every interleaving must end with all frames
// reaped, although nothing happens after the last one was sent. The transitions of the
// word are the real ones; a compare-and-swap loop is one step, since only its successful
// turn has an effect.

type txBroken uint8

const (
	txCorrect         txBroken = iota
	txNotRearmed               // the end of a poll forgets what it left in the ring
	txCountedLate              // SCHED is read before the frames are counted
	txStaleNotArmed            // a cancelled timer is taken for a running one
	txStaleForEver             // the expiry of a cancelled timer leaves it cancelled
	txCancelledBlind           // SCHED is not read again after a cancellation
	txCancelledInVain          // cancelling a timer on a scheduled instance loses the expiry
	txBrokenWays
)

func (b txBroken) String() string {
	return [txBrokenWays]string{
		"correct", "not-rearmed", "counted-late", "stale-not-armed", "stale-for-ever", "cancelled-blind", "cancelled-in-vain",
	}[b]
}

const (
	senderIdle = iota
	senderCount
	senderLook
	senderCountLate
	senderDecide
	senderLookAgain
	senderStart
	senderDone

	loopIdle = iota
	loopExpire
	loopPoll
	loopComplete
	loopLeft
	loopStart
)

type txWorld struct {
	word           txWord
	sched, missed  bool
	packet         bool // yet to come in
	ticking, event bool
	inFlight, done int8 // frames with the device; completed, not reaped
	unreaped       int8
	sender         [2]uint8 // program counters
	sawSched       [2]bool
	loop           uint8
}

// step applies a real transition, broken if asked for.
func (w *txWorld) step(move func(txWord) (txWord, bool)) bool {
	next, ok := move(w.word)
	w.word = next
	return ok
}

// start is the kernel's: an expiry that nobody has collected is forgotten.
func (w *txWorld) start() { w.ticking, w.event = true, false }

func (w *txWorld) schedule() {
	w.missed = w.sched
	w.sched = true
}

func (w *txWorld) arm(rule ArmRule, b txBroken) (call bool) {
	switch {
	case rule == ArmAlways:
		return w.step(onRearm)
	case b == txStaleNotArmed && w.word.state() == txStale:
		return false
	}
	return w.step(onArm)
}

func (w *txWorld) send(i int, rule ArmRule, b txBroken) bool {
	pc := &w.sender[i]
	switch *pc {
	case senderIdle:
		w.inFlight++
		*pc = senderCount
		if b == txCountedLate {
			*pc = senderLook
		}
	case senderCount:
		w.unreaped++
		*pc = senderLook
	case senderLook:
		w.sawSched[i] = w.sched
		*pc = senderDecide
		if b == txCountedLate {
			*pc = senderCountLate
		}
	case senderCountLate:
		w.unreaped++
		*pc = senderDecide
	case senderDecide:
		*pc = senderDone
		switch {
		case rule == ArmAlways || !w.sawSched[i]:
			if w.arm(rule, b) {
				*pc = senderStart
			}
		case w.step(onCancel) && b != txCancelledBlind:
			*pc = senderLookAgain
			if b == txCancelledInVain {
				w.ticking = false // stopped, but taken for one that runs on
			}
		}
	case senderLookAgain:
		*pc = senderDone
		if !w.sched && w.arm(rule, b) {
			*pc = senderStart
		}
	case senderStart:
		w.start()
		*pc = senderDone
	default:
		return false
	}
	return true
}

func (w *txWorld) turn(b txBroken) bool {
	switch w.loop {
	case loopIdle:
		switch {
		case w.event:
			w.event = false
			w.loop = loopExpire
		case w.sched:
			w.loop = loopPoll
		default:
			return false
		}
	case loopExpire:
		w.loop = loopIdle
		switch {
		case b == txStaleForEver && w.word.state() == txStale:
		case w.step(onExpire):
			w.word = w.word.to(txIdle)
			w.schedule()
		}
	case loopPoll:
		w.unreaped -= w.done
		w.done = 0
		w.loop = loopComplete
	case loopComplete:
		w.sched, w.missed = w.missed, false
		w.loop = loopLeft
		if w.sched || b == txNotRearmed {
			w.loop = loopIdle
		}
	case loopLeft:
		w.loop = loopIdle
		if w.unreaped > 0 && w.arm(ArmIdle, b) {
			w.loop = loopStart
		}
	default: // loopStart
		w.start()
		w.loop = loopIdle
	}
	return true
}

func (w txWorld) successors(rule ArmRule, b txBroken) []txWorld {
	var next []txWorld
	try := func(step func(*txWorld) bool) {
		if n := w; step(&n) {
			next = append(next, n)
		}
	}
	for i := range w.sender {
		try(func(n *txWorld) bool { return n.send(i, rule, b) })
	}
	try(func(n *txWorld) bool { return n.turn(b) })
	try(func(n *txWorld) bool { // the device completes a frame
		n.inFlight--
		n.done++
		return n.inFlight >= 0
	})
	try(func(n *txWorld) bool { // the kernel's timer expires
		expires := n.ticking
		n.ticking, n.event = false, n.event || expires
		return expires
	})
	try(func(n *txWorld) bool { // a packet comes in
		comes := n.packet
		n.packet = false
		if comes {
			n.schedule()
		}
		return comes
	})
	return next
}

func exploreTx(rule ArmRule, b txBroken) (worlds int, stuck *txWorld) {
	start := txWorld{packet: true, loop: loopIdle}
	visited := map[txWorld]struct{}{start: {}}
	for open := []txWorld{start}; len(open) > 0; {
		w := open[len(open)-1]
		open = open[:len(open)-1]
		next := w.successors(rule, b)
		if len(next) == 0 && (w.unreaped != 0 || w.word.state() == txRunning) {
			return len(visited), &w
		}
		for _, n := range next {
			if _, seen := visited[n]; !seen {
				visited[n] = struct{}{}
				open = append(open, n)
			}
		}
	}
	return len(visited), nil
}

func TestTxModelBringsEveryFrameHome(t *testing.T) {
	for _, rule := range []ArmRule{ArmIdle, ArmAlways} {
		worlds, stuck := exploreTx(rule, txCorrect)
		if stuck != nil {
			t.Errorf("%v: frames stay out for ever: %+v", rule, *stuck)
		}
		t.Logf("%v: %d worlds", rule, worlds)
	}
}

func TestTxModelNoticesEveryBrokenWay(t *testing.T) {
	for b := txCorrect + 1; b < txBrokenWays; b++ {
		if worlds, stuck := exploreTx(ArmIdle, b); stuck == nil {
			t.Errorf("%v: nothing noticed in %d worlds", b, worlds)
		} else {
			t.Logf("%v: noticed after %d worlds", b, worlds)
		}
	}
}
