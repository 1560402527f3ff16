// SPDX-License-Identifier: Apache-2.0

package napi

import (
	"runtime"
	"time"
)

// giveWayNanos is how long a loop that does not block keeps its place in the Go
// scheduler. The runtime itself takes it away after 10 ms, in the middle of whatever
// the loop does. Smaller: giving way from a locked thread is two thread switches, so
// not often. Larger than 10 ms: the runtime comes first, perhaps inside a lock.
const giveWayNanos = int64(8 * time.Millisecond)

const (
	// spinInterval is EventInterval for a loop without packets, which has nothing better
	// to do. Smaller: as EventInterval. Larger: a source without a Pending waits longer.
	spinInterval = int64(100 * time.Microsecond)
	// contendedNanos is how long a Yield takes if another thread ran meanwhile. One that
	// found nobody took under 3 µs on a virtual machine. Smaller: an interrupt is mistaken
	// for a thread. Larger: a thread is not noticed.
	contendedNanos = int64(10 * time.Microsecond)
	// contendedPause is how long an adaptive loop does not look on after it gave the CPU
	// away for nothing, which may have cost a time slice (3 ms). Smaller: more such
	// slices. Larger: the loop sleeps and wakes for each packet long after the other
	// thread has gone.
	contendedPause = int64(100 * time.Millisecond)
)

// lookOn decides between looking on and sleeping when no instance has work.
func (l *Loop) lookOn() bool {
	switch l.cfg.Mode {
	case Busy:
		return true
	case Adaptive:
		if l.lostCPU {
			l.lostCPU = false
			l.stats.Contended++
			l.alone = l.now + contendedPause
		}
		return l.now >= l.alone && l.now-l.worked < int64(l.cfg.AdaptiveWindow)
	default:
		return false
	}
}

// spin is a turn without work: somebody else may need the CPU to bring us some.
//
// Whether that was so shows in the next turn. If another thread ran and there is work
// now, it was the device's: going on like this is right. If it ran and there is none, it
// has nothing to do with us, and it is better to sleep: a sleeper is woken by the softirq
// on the spot, while each look would cost a time slice of the other's.
func (l *Loop) spin() {
	l.stats.Spins++
	l.cfg.Yield()
	took := l.tick()
	l.stats.IdleNanos += took
	l.lostCPU = took >= contendedNanos
	if l.now-l.looked >= spinInterval {
		l.cfg.EndOfRound()
	}
}

// attend does, for a loop that stays awake, what a sleep would have done: it asks for
// events and lets other goroutines run, each now and then.
func (l *Loop) attend(interval int64) error {
	if l.now-l.gaveWay >= giveWayNanos {
		runtime.Gosched()
		l.stats.IdleNanos += l.tick()
		l.gaveWay = l.now
	}
	if l.now-l.looked < interval {
		return nil
	}
	l.stats.Looks++
	n, err := l.cfg.Waiter.Wait(0, l.events[:])
	if err != nil {
		return err
	}
	l.dispatch(l.events[:n])
	return nil
}

// sleep blocks until an event, unless there is something to do after all.
func (l *Loop) sleep() error {
	l.cfg.BeforeSleep()
	// Ordering: announce, then look. Pairs with ring, whose callers store first and look
	// for the announcement afterwards: either we see their store, or they see the
	// announcement and ring. Packets need no such pair: their edge stays recorded in the
	// Waiter, also if it comes between this look and the wait.
	l.sleeping.Store(1)
	if l.hasReason() {
		l.sleeping.Store(0)
		return nil
	}
	l.stats.Sleeps++
	// Ordering: an even turn tells quiesce that we are inside no instance. It comes after
	// the last look at one, and the odd turn before the next.
	l.turn.Add(1)
	n, err := l.cfg.Waiter.Wait(-1, l.events[:])
	l.turn.Add(1)
	l.sleeping.Store(0)
	if err != nil {
		return err
	}
	l.stats.IdleNanos += l.tick()
	l.gaveWay = l.now
	l.dispatch(l.events[:n])
	return nil
}

// hasReason reports whether there is something to do rather than sleep.
func (l *Loop) hasReason() bool {
	if l.stop.Load() || !l.inbox.empty() {
		return true
	}
	for _, n := range *l.napis.Load() {
		if n.hasWork() {
			return true
		}
	}
	return false
}

// dispatch turns events into schedules.
func (l *Loop) dispatch(events []Event) {
	l.looked = l.now
	napis := *l.napis.Load()
	for _, ev := range events {
		switch {
		case ev.Napi == Doorbell:
			l.stats.Wakeups++
		case ev.Napi >= 0 && ev.Napi < len(napis) && napis[ev.Napi] != nil:
			l.handle(napis[ev.Napi], ev.Source)
		}
		// Anything else is the last event of an instance that was removed.
	}
}

func (l *Loop) handle(n *Napi, src Source) {
	switch {
	case src == SourceTimer && n.timer != nil:
		n.timer.Expired()
	case !n.IsScheduled():
		n.Schedule(src)
	}
	// One that is scheduled waits on the list: its poll has yet to begin and will find
	// what the event is about, so MISSED would only make it poll once more for nothing.
}

// enqueue takes an instance whose SCHED the caller has set.
func (l *Loop) enqueue(n *Napi) {
	l.inbox.push(n)
	l.ring()
}

// ring wakes the loop if it sleeps. One caller a sleep pays for it.
//
// Ordering: the caller has stored its reason (inbox, stop) before; pairs with sleep.
func (l *Loop) ring() {
	if l.sleeping.Load() != 1 || !l.sleeping.CompareAndSwap(1, 0) {
		return
	}
	if l.cfg.Waiter.Wake() != nil {
		l.failed.Add(1)
	}
}
