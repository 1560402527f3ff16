// SPDX-License-Identifier: Apache-2.0

package napi

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// waitEvents is how many events one Wait returns at most. What does not fit stays
// in the Waiter for the next one.
const waitEvents = 64

// LoopStats are the counters of one loop.
type LoopStats struct {
	Rounds      uint64 // rounds that polled
	Polls       uint64
	EmptyPolls  uint64 // polls that found no packet
	Packets     uint64
	Exhausted   uint64          // polls that used their whole weight
	TimeSqueeze uint64          // rounds ended by the packet budget or the time limit
	Schedules   [sources]uint64 // indexed by Source
	Spins       uint64          // looks without work, awake
	Contended   uint64          // spins in which another thread took the CPU and brought no work
	Looks       uint64          // waits that did not block
	Sleeps      uint64          // waits that blocked
	Wakeups     uint64          // doorbells heard: sleeps that another goroutine ended
	BusyNanos   int64           // time in polls that found packets
	IdleNanos   int64           // all other time, sleep included
}

// Loop polls the instances of one worker on one thread.
type Loop struct {
	cfg LoopConfig

	// napis is what the loop looks at, indexed by Event.Napi; nil = free slot.
	// Replaced as a whole, under mu, by Add and Remove.
	napis atomic.Pointer[[]*Napi]
	mu    sync.Mutex

	// Owner: the loop's thread.
	list    list
	stats   LoopStats
	now     int64 // the clock as last read
	worked  int64 // when a poll last found a packet
	alone   int64 // until when an adaptive loop does not look on
	lostCPU bool  // whether another thread ran during the last spin
	looked  int64 // when the Waiter was last asked
	gaveWay int64 // when the runtime could last run others in our place
	events  [waitEvents]Event

	_     [cacheLine]byte
	inbox inbox
	// sleeping is 1 from the announcement of a sleep until its end, or until
	// somebody has taken it upon himself to ring the doorbell.
	sleeping atomic.Uint32
	stop     atomic.Bool
	failed   atomic.Uint64 // doorbells that could not be rung

	_ [cacheLine]byte
	// turn is odd while the loop may be inside an instance, and grows by two with
	// each turn it takes awake. Written by the loop's thread only.
	turn atomic.Uint64
}

// NewLoop makes a loop without instances.
func NewLoop(cfg LoopConfig) (*Loop, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Loop{cfg: cfg}
	l.napis.Store(&[]*Napi{})
	return l, nil
}

// Add gives the loop an instance, enables and schedules it, and returns its index
// for events. Any goroutine, also while the loop runs. An instance is added once.
func (l *Loop) Add(n *Napi) int {
	n.loop = l // nobody schedules it before it is enabled
	l.mu.Lock()
	napis := append([]*Napi(nil), *l.napis.Load()...)
	index := 0
	for index < len(napis) && napis[index] != nil {
		index++
	}
	if index == len(napis) {
		napis = append(napis, nil)
	}
	napis[index] = n
	l.napis.Store(&napis)
	l.mu.Unlock()
	n.Enable()
	return index
}

// Remove disables an instance and takes it off the loop for good. When it returns,
// the loop is not inside the instance and will not enter it again.
func (l *Loop) Remove(n *Napi) {
	n.Disable()
	l.mu.Lock()
	defer l.mu.Unlock()
	napis := append([]*Napi(nil), *l.napis.Load()...)
	for i := range napis {
		if napis[i] == n {
			napis[i] = nil
		}
	}
	l.napis.Store(&napis)
}

// Stats returns the counters.
//
// Owner: the loop's thread (EndOfRound, BeforeSleep), or anyone once Run has returned.
func (l *Loop) Stats() LoopStats { return l.stats }

// FailedWakes returns how many doorbells could not be rung: none while the Waiter is open.
func (l *Loop) FailedWakes() uint64 { return l.failed.Load() }

// Stop makes Run return when its turn is over. Any goroutine; also before Run.
func (l *Loop) Stop() {
	l.stop.Store(true)
	l.ring()
}

// Run polls until Stop, on the calling goroutine, which the caller has locked to its
// thread if that matters to him. A loop runs once. What is scheduled when it returns
// is not polled any more. The error is the Waiter's.
func (l *Loop) Run() error {
	l.turn.Add(1)
	defer l.turn.Add(1)
	l.readyClock()
	for !l.stop.Load() {
		if err := l.takeTurn(); err != nil {
			return fmt.Errorf("napi loop: wait for events: %w", err)
		}
	}
	return nil
}

// readyClock starts all that is measured from now, with no packet just seen.
func (l *Loop) readyClock() {
	l.now = l.cfg.Clock()
	l.alone = l.now
	l.worked = l.now - int64(l.cfg.AdaptiveWindow)
	l.looked, l.gaveWay = l.now, l.now
}

// takeTurn is one round, one look without work, or one sleep.
func (l *Loop) takeTurn() error {
	// Ordering: pairs with quiesce. The turn is counted before any instance's state is
	// read; Disable sets its bit before it reads the turn.
	l.turn.Add(2)
	l.gather()
	switch {
	case !l.list.empty():
		l.round()
		return l.attend(int64(l.cfg.EventInterval))
	case l.lookOn():
		l.spin()
		return l.attend(spinInterval)
	default:
		return l.sleep()
	}
}

// gather puts on the list what was scheduled, and idle instances with packets.
func (l *Loop) gather() {
	for n := l.inbox.takeAll(); n != nil; {
		next := n.next
		l.accept(n)
		n = next
	}
	for _, n := range *l.napis.Load() {
		if n.hasWork() && n.ScheduleCheck() {
			n.source = SourceIRQ
			l.accept(n)
		}
	}
}

// hasWork reports whether an idle instance has packets. It does not enter one that
// is disabled: its rings may be gone.
func (n *Napi) hasWork() bool {
	return n != nil && n.load()&(stateSched|stateDisable) == 0 && n.poller.Pending()
}

// accept puts a scheduled instance on the list, which reuses its link.
func (l *Loop) accept(n *Napi) {
	l.countSchedule(n, n.source)
	l.list.push(n)
}

func (l *Loop) countSchedule(n *Napi, src Source) {
	n.stats.Schedules[src]++
	l.stats.Schedules[src]++
}

// round polls from the list until it is empty or one of the limits is reached.
func (l *Loop) round() {
	l.stats.Rounds++
	l.lostCPU = false
	start, left := l.now, l.cfg.Budget
	for n := l.list.pop(); n != nil; n = l.list.pop() {
		left -= l.poll(n)
		if left <= 0 || l.now-start >= int64(l.cfg.TimeLimit) {
			l.stats.TimeSqueeze++
			break
		}
	}
	l.cfg.EndOfRound()
}

// poll polls one instance and decides where it goes.
func (l *Loop) poll(n *Napi) (work int) {
	if n.drop() {
		return 0
	}
	work = n.poller.Poll(n.weight)
	l.countPoll(n, work)
	switch {
	case work >= n.weight:
		l.requeue(n)
	case !n.CompleteDone(work):
		l.countSchedule(n, SourceMissed)
		l.requeue(n)
	case n.timer != nil:
		n.timer.completed()
	}
	return work
}

// requeue puts an instance that is still scheduled behind everyone who has work now,
// so that nobody waits for more than one poll of each other instance.
func (l *Loop) requeue(n *Napi) {
	l.gather()
	l.list.push(n)
}

func (l *Loop) countPoll(n *Napi, work int) {
	n.stats.Polls++
	l.stats.Polls++
	if work <= 0 {
		n.stats.Empty++
		l.stats.EmptyPolls++
		l.stats.IdleNanos += l.tick()
		return
	}
	n.stats.Packets += uint64(work)
	l.stats.Packets += uint64(work)
	l.stats.BusyNanos += l.tick()
	l.worked = l.now
	if work >= n.weight {
		n.stats.Exhausted++
		l.stats.Exhausted++
	}
}

// tick reads the clock and returns the time since it was last read.
func (l *Loop) tick() int64 {
	last := l.now
	l.now = l.cfg.Clock()
	return l.now - last
}
