// SPDX-License-Identifier: Apache-2.0

package napi

import (
	"fmt"
	"testing"
)

// The model explores every interleaving of two producers, a loop and a controller that
// disables and enables the instance, one atomic operation at a time. The transitions of
// the state word are the real ones; a compare-and-swap loop is one step, since only its
// successful turn has an effect. A producer's work is a plain store: it stays in a
// store buffer, unseen by the loop, until the producer's next swap or whenever the
// machine likes (total store order, as on amd64).
//
// The instance has no Pending, as a TAP: a wake-up that is lost here is lost for good.

// broken is a way of writing the algorithm wrong. The model must notice each of them.
type broken uint8

const (
	correct               broken = iota
	missedNotSet                 // a schedule during the poll leaves no trace
	missedNotSwapped             // nothing is swapped if SCHED and MISSED are set already
	missedIgnored                // the poll's end clears SCHED whatever happened
	noLastLook                   // the loop sleeps without looking again
	lookBeforeAnnounce           // ... or looks before it announces
	announceBuffered             // the announcement is a plain store
	bellBeforePush               // the announcement is looked for before the push
	disableDoesNotWait           // Disable returns at once
	enableDoesNotSchedule        // Enable does not make up for what was dropped
	dropWithoutLooking           // an instance enabled again on the list is dropped
	brokenWays
)

func (b broken) String() string {
	return [brokenWays]string{
		"correct", "missed-not-set", "missed-not-swapped", "missed-ignored", "no-last-look", "look-before-announce",
		"announce-buffered", "bell-before-push", "disable-does-not-wait", "enable-does-not-schedule", "drop-without-looking",
	}[b]
}

const (
	producers  = 2
	controller = 2 // the thread after the producers
	looper     = 3
	threads    = 4
)

// world is one state of everything. It is comparable, so that visited ones are known.
type world struct {
	state                    state
	inInbox, inList, inPoll  bool
	sleeping, sleepingStored bool // stored: in the loop's store buffer
	bell                     bool
	turn                     uint8 // modulo 8; more turns than that do not matter
	work, done               uint8
	buffered                 [producers]uint8
	left                     [producers]uint8 // items still to be produced
	quiesced                 bool             // the controller relies on being alone
	pc                       [threads]uint8
	turnSeen                 uint8
	sawSleeper               [threads]bool
	violation                string
}

// move applies a transition, as an atomic read-modify-write that empties the store buffer.
func (w *world) move(tid int, step func(state) (state, bool)) bool {
	next, ok := step(w.state)
	w.flush(tid)
	w.state = next
	return ok
}

// flush empties the thread's store buffer, as every atomic read-modify-write does.
func (w *world) flush(tid int) {
	if tid < producers {
		w.work += w.buffered[tid]
		w.buffered[tid] = 0
	}
}

// Program counters of a schedule, which producers and the controller share.
const (
	scheduleMove = iota
	schedulePush
	scheduleLook
	scheduleBell
	scheduleEnd
)

// schedule takes one step of Schedule at pc and returns the next pc.
func (w *world) schedule(tid int, b broken, pc uint8) uint8 {
	switch pc {
	case scheduleMove:
		both := stateSched | stateMissed
		if b == missedNotSwapped && w.state&both == both {
			return scheduleEnd
		}
		step := onSchedule
		if b == missedNotSet {
			step = func(s state) (state, bool) {
				next, won := onSchedule(s)
				return next &^ stateMissed, won
			}
		}
		switch won := w.move(tid, step); {
		case !won:
			return scheduleEnd
		case b == bellBeforePush:
			return scheduleLook
		}
		return schedulePush
	case schedulePush:
		if w.inInbox || w.inList || w.inPoll {
			w.violation = "on a list twice"
		}
		w.inInbox = true
		if b == bellBeforePush {
			return scheduleBell
		}
		return scheduleLook
	case scheduleLook:
		w.sawSleeper[tid] = w.sleeping
		if b == bellBeforePush {
			return schedulePush
		}
		return scheduleBell
	default: // scheduleBell
		if w.sawSleeper[tid] && w.sleeping {
			w.sleeping, w.bell = false, true
		}
		return scheduleEnd
	}
}

// produce is one step of a producer: an item into the store buffer, then Schedule.
func (w *world) produce(tid int, b broken) bool {
	const store = 100
	switch pc := w.pc[tid]; {
	case pc == scheduleEnd && w.left[tid] == 0:
		return false
	case pc == scheduleEnd:
		w.pc[tid] = store
	case pc == store:
		w.buffered[tid]++
		w.left[tid]--
		w.pc[tid] = scheduleMove
	default:
		w.pc[tid] = w.schedule(tid, b, pc)
	}
	return true
}

// control is one step of the controller: Disable, be alone, Enable.
func (w *world) control(b broken) bool {
	const (
		disable = iota
		turnLoad
		turnWait
		alone
		enable
		enableSchedule
		end = enableSchedule + scheduleEnd
	)
	pc := &w.pc[controller]
	switch {
	case *pc == disable:
		w.move(controller, onDisable)
		*pc = turnLoad
	case *pc == turnLoad:
		w.turnSeen = w.turn
		*pc = turnWait
	case *pc == turnWait:
		if b != disableDoesNotWait && w.turnSeen&1 == 1 && w.turn == w.turnSeen {
			return false
		}
		w.quiesced = true
		*pc = alone
	case *pc == alone:
		w.quiesced = false
		*pc = enable
	case *pc == enable:
		w.move(controller, onEnable)
		*pc = enableSchedule
		if b == enableDoesNotSchedule {
			*pc = end
		}
	case *pc < end:
		*pc = enableSchedule + w.schedule(controller, b, *pc-enableSchedule)
	default:
		return false
	}
	return true
}

// run is one step of the loop.
func (w *world) run(b broken) bool {
	const (
		turnBegins = iota
		take
		pop
		dropLook
		drop
		poll
		complete
		announce
		lastLook
		announceLate
		block
		wake
	)
	pc := &w.pc[looper]
	switch *pc {
	case turnBegins:
		w.turn = (w.turn + 2) % 8
		*pc = take
	case take:
		w.inList = w.inList || w.inInbox
		w.inInbox = false
		*pc = pop
	case pop:
		switch {
		case w.inList:
			*pc = dropLook
		case b == lookBeforeAnnounce:
			*pc = lastLook
		default:
			*pc = announce
		}
	case dropLook:
		*pc = drop
		if w.state&stateDisable == 0 {
			w.inList, w.inPoll = false, true
			*pc = poll
		}
	case drop:
		step := onDrop
		if b == dropWithoutLooking {
			step = func(s state) (state, bool) { return s &^ (stateSched | stateMissed), true }
		}
		w.inList = false
		*pc = turnBegins
		if !w.move(looper, step) {
			w.inPoll = true
			*pc = poll
		}
	case poll:
		w.done = w.work
		*pc = complete
	case complete:
		step := onComplete
		if b == missedIgnored {
			step = func(s state) (state, bool) { return s &^ (stateSched | stateMissed), true }
		}
		w.inPoll, w.inList = false, !w.move(looper, step)
		*pc = turnBegins
	case announce:
		if b == announceBuffered {
			w.sleepingStored = true
		} else {
			w.sleeping = true
		}
		*pc = lastLook
		if b == noLastLook {
			*pc = block
		}
	case lastLook:
		switch {
		case w.inInbox:
			w.sleeping, w.sleepingStored = false, false
			*pc = turnBegins
		case b == lookBeforeAnnounce:
			*pc = announceLate
		default:
			*pc = block
		}
	case announceLate:
		w.sleeping = true
		*pc = block
	case block:
		w.turn = (w.turn + 1) % 8
		*pc = wake
	default: // wake
		if !w.bell {
			return false
		}
		w.bell, w.sleeping, w.sleepingStored = false, false, false
		w.turn = (w.turn + 1) % 8
		*pc = turnBegins
	}
	return true
}

// successors are the worlds one step away.
func (w world) successors(b broken) []world {
	var next []world
	try := func(step func(*world) bool) {
		if n := w; step(&n) {
			next = append(next, n)
		}
	}
	for tid := range producers {
		try(func(n *world) bool { return n.produce(tid, b) })
		try(func(n *world) bool { flushed := n.buffered[tid] != 0; n.flush(tid); return flushed })
	}
	try(func(n *world) bool { return n.control(b) })
	try(func(n *world) bool { return n.run(b) })
	try(func(n *world) bool {
		stored := n.sleepingStored
		n.sleeping, n.sleepingStored = n.sleeping || stored, false
		return stored
	})
	return next
}

// wrong says what a world breaks, or nothing.
func (w world) wrong(items uint8, last bool) string {
	switch {
	case w.violation != "":
		return w.violation
	case w.quiesced && w.inPoll:
		return "polled after Disable returned"
	case last && w.done != items:
		return fmt.Sprintf("asleep for ever with %d of %d items handled", w.done, items)
	case last && (w.inInbox || w.inList || w.state != 0):
		return fmt.Sprintf("asleep for ever, state %03b, in inbox %v, in list %v", w.state, w.inInbox, w.inList)
	}
	return ""
}

// explore visits every reachable world and returns how many there are, and what is wrong
// with the first wrong one.
func explore(b broken, perProducer uint8) (worlds int, wrong string) {
	start := world{turn: 1}
	for tid := range producers {
		start.left[tid] = perProducer
		start.pc[tid] = scheduleEnd
	}
	visited := map[world]struct{}{start: {}}
	for open := []world{start}; len(open) > 0; {
		w := open[len(open)-1]
		open = open[:len(open)-1]
		next := w.successors(b)
		if wrong := w.wrong(producers*perProducer, len(next) == 0); wrong != "" {
			return len(visited), wrong
		}
		for _, n := range next {
			if _, seen := visited[n]; !seen {
				visited[n] = struct{}{}
				open = append(open, n)
			}
		}
	}
	return len(visited), ""
}

func TestModelLosesNoWakeupInAnyInterleaving(t *testing.T) {
	worlds, wrong := explore(correct, 1)
	if wrong != "" {
		t.Fatal(wrong)
	}
	t.Logf("%d worlds", worlds)
}

func TestModelNoticesEveryBrokenWay(t *testing.T) {
	for b := correct + 1; b < brokenWays; b++ {
		t.Run(b.String(), func(t *testing.T) {
			worlds, wrong := explore(b, 1)
			if wrong == "" {
				worlds, wrong = explore(b, 2)
			}
			if wrong == "" {
				t.Fatalf("nothing noticed in %d worlds", worlds)
			}
			t.Logf("noticed after %d worlds: %s", worlds, wrong)
		})
	}
}
