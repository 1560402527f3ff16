// SPDX-License-Identifier: Apache-2.0

package napi

import (
	"runtime"
	"sync/atomic"
	"time"
)

// DefaultWeight is how many packets one poll may take. It is the kernel's
// NAPI_POLL_WEIGHT: smaller and the cost of a poll is shared by fewer packets,
// larger and the other instances of the loop wait longer.
const DefaultWeight = 64

// cacheLine keeps words of different writers apart. 64 bytes is the line of amd64
// and of most arm64; the neighbour line is fetched with it, hence two of them.
const cacheLine = 128

// Poller is what an instance does when it is polled. Both methods run on the loop's
// thread only, never at the same time, and never after Disable has returned.
type Poller interface {
	// Poll handles at most budget received packets and returns how many it did. It
	// also does what is not charged, as TX completions. Returning budget or more
	// means that there may be more to do.
	Poll(budget int) int
	// Pending reports whether a poll would find packets, without consuming any. It
	// is called often: it looks at memory and makes no system call. A source that
	// cannot be looked at that way returns false and relies on its events.
	Pending() bool
}

// Source says what scheduled an instance.
type Source uint8

const (
	SourceIRQ    Source = iota // readiness of the descriptor, or packets seen in the ring
	SourceTimer                // the TX timer expired
	SourceMissed               // a schedule that came during the poll
	SourceKick                 // another worker, the control plane, or 25 unreaped frames
	sources
)

// String returns the source's name as the metrics know it.
func (s Source) String() string {
	names := [sources]string{"irq", "timer", "missed", "kick"}
	if s < sources {
		return names[s]
	}
	return "unknown"
}

// Napi is one poll instance. It belongs to the loop it was added to.
type Napi struct {
	name   string
	poller Poller
	weight int

	loop  *Loop    // set by Loop.Add before the instance is enabled
	timer *TxTimer // set by NewTxTimer before Loop.Add; nil = none

	_     [cacheLine]byte
	state atomic.Uint32

	// Owner: next and source belong to whoever set SCHED, and pass to the loop with
	// the instance through the inbox.
	next   *Napi
	source Source

	_     [cacheLine]byte
	stats Stats // Owner: the loop's thread.
}

// Stats are the counters of one instance.
type Stats struct {
	Polls     uint64          // calls of Poll
	Empty     uint64          // polls that found no packet
	Exhausted uint64          // polls that used their whole weight
	Packets   uint64          // packets in all polls
	Schedules [sources]uint64 // indexed by Source
}

// New makes an instance with the weight of one poll, 0 meaning DefaultWeight. It is
// disabled until it is added to a loop.
func New(name string, p Poller, weight int) *Napi {
	if weight <= 0 {
		weight = DefaultWeight
	}
	n := &Napi{name: name, poller: p, weight: weight}
	n.state.Store(uint32(stateDisable))
	return n
}

// Name returns the name given to New.
func (n *Napi) Name() string { return n.name }

// Weight returns the most packets one poll takes.
func (n *Napi) Weight() int { return n.weight }

// Stats returns the counters.
//
// Owner: the loop's thread (EndOfRound, BeforeSleep), or anyone once Run has returned.
func (n *Napi) Stats() Stats { return n.stats }

// IsScheduled reports whether the instance is on a list or being polled.
func (n *Napi) IsScheduled() bool { return n.load()&stateSched != 0 }

// ScheduleCheck sets SCHED if it was clear and the instance is not disabled. If it
// was set, it sets MISSED and returns false. The caller that gets true must call
// Enqueue; most want Schedule, which is both.
func (n *Napi) ScheduleCheck() bool { return n.move(onSchedule) }

// Enqueue puts an instance on the list of its loop and wakes the loop if it sleeps.
// Only for the caller whose ScheduleCheck returned true.
func (n *Napi) Enqueue(src Source) {
	n.source = src
	n.loop.enqueue(n)
}

// Schedule asks for a poll, from any goroutine.
func (n *Napi) Schedule(src Source) {
	if n.ScheduleCheck() {
		n.Enqueue(src)
	}
}

// CompleteDone ends a poll that did work packets. It returns false, and the instance
// stays scheduled, if the whole weight was used or a schedule was missed meanwhile.
//
// Owner: the loop's thread.
func (n *Napi) CompleteDone(work int) bool {
	return work < n.weight && n.move(onComplete)
}

// Disable keeps new polls out and waits until the loop is not, and will not be,
// inside the instance's Poll or Pending. Events meanwhile are dropped; Enable makes
// up for them. Calling it twice does no harm. It must not be called on the loop's
// own thread, which it would wait for.
func (n *Napi) Disable() {
	n.move(onDisable)
	if n.loop != nil {
		n.loop.quiesce()
	}
}

// Enable lets the instance run again and schedules it, since whatever happened while
// it was disabled left no trace. It does nothing before Loop.Add, which enables, and is
// not for an instance that was removed from its loop.
func (n *Napi) Enable() {
	if n.loop == nil {
		return
	}
	n.move(onEnable)
	n.Schedule(SourceKick)
}

// drop clears SCHED of an instance that was disabled while it was on the list.
func (n *Napi) drop() bool {
	return n.load()&stateDisable != 0 && n.move(onDrop)
}

func (n *Napi) load() state { return state(n.state.Load()) }

// move applies one transition.
//
// Ordering: the swap is made even where the word does not change. A producer that
// only read "SCHED and MISSED are set already" could still have its work in its
// store buffer when the loop clears MISSED and polls; the swap orders the work before
// the loop's own swap, in CompleteDone or in Enable, and so before the next poll.
func (n *Napi) move(step func(state) (state, bool)) bool {
	for {
		old := n.state.Load()
		next, ok := step(state(old))
		if n.state.CompareAndSwap(old, uint32(next)) {
			return ok
		}
	}
}

// quiesce waits until the loop has left the turn it is in. A turn that begins later
// sees what the caller stored before the call.
func (l *Loop) quiesce() {
	const (
		spins = 100                   // a poll takes microseconds, and a turn is over soon
		pause = 50 * time.Microsecond // a round may take TimeLimit, so do not burn a CPU on it
	)
	turn := l.turn.Load()
	if turn&1 == 0 {
		return
	}
	for i := 0; l.turn.Load() == turn; i++ {
		if i < spins {
			runtime.Gosched()
		} else {
			time.Sleep(pause)
		}
	}
}
