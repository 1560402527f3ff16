// SPDX-License-Identifier: Apache-2.0

package napi

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// deadline bounds every wait for a condition. Nothing here takes long; it only ends a
// test that hangs.
const deadline = 60 * time.Second

// queueWaiter is a Waiter without a kernel: a queue of events and a condition.
type queueWaiter struct {
	mu     sync.Mutex
	cond   sync.Cond
	queue  []Event
	blocks int   // how often Wait blocked
	looks  int   // how often Wait(0) was called
	err    error // what Wait returns instead of events
}

func newQueueWaiter() *queueWaiter {
	w := &queueWaiter{}
	w.cond.L = &w.mu
	return w
}

func (w *queueWaiter) Wait(timeout time.Duration, evs []Event) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if timeout >= 0 {
		w.looks++
	} else if len(w.queue) == 0 && w.err == nil {
		w.blocks++
		w.cond.Broadcast()
		for len(w.queue) == 0 && w.err == nil {
			w.cond.Wait()
		}
	}
	n := copy(evs, w.queue)
	w.queue = append(w.queue[:0], w.queue[n:]...)
	return n, w.err
}

func (w *queueWaiter) Wake() error {
	w.post(Event{Napi: Doorbell, Source: SourceKick})
	return nil
}

func (w *queueWaiter) post(ev Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, ev)
	w.cond.Broadcast()
}

func (w *queueWaiter) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	w.cond.Broadcast()
}

// awaitBlocks waits until Wait has blocked n times.
func (w *queueWaiter) awaitBlocks(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.blocks < n {
		w.cond.Wait()
	}
}

// work is a Poller with a counted supply of packets.
type work struct {
	supply  atomic.Int64
	pending bool // whether Pending looks at the supply
	polls   atomic.Int64
	handled atomic.Int64
	onPoll  func(budget int) // called at the start of a poll; nil = none
}

func (p *work) Poll(budget int) int {
	p.polls.Add(1)
	if p.onPoll != nil {
		p.onPoll(budget)
	}
	n := int(min(p.supply.Load(), int64(budget)))
	p.supply.Add(-int64(n))
	p.handled.Add(int64(n))
	return n
}

func (p *work) Pending() bool { return p.pending && p.supply.Load() > 0 }

// manualClock moves only when told, or by step at each reading.
type manualClock struct {
	now, step int64
	reads     int
}

func (c *manualClock) read() int64 {
	c.reads++
	c.now += c.step
	return c.now
}

// newTestLoop makes a loop whose turns the test takes itself.
func newTestLoop(t testing.TB, cfg LoopConfig) (*Loop, *queueWaiter) {
	t.Helper()
	w := newQueueWaiter()
	if cfg.Waiter == nil {
		cfg.Waiter = w
	}
	l, err := NewLoop(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l.readyClock()
	return l, w
}

func (l *Loop) mustTurn(t testing.TB) {
	t.Helper()
	if err := l.takeTurn(); err != nil {
		t.Fatal(err)
	}
}

// mustPoll takes the turn in which one packet is handled.
func (l *Loop) mustPoll(t testing.TB, p *work) {
	t.Helper()
	p.supply.Store(1)
	before := p.handled.Load()
	l.mustTurn(t)
	if p.handled.Load() != before+1 {
		t.Fatal("the packet was not handled")
	}
}

// startLoop runs a loop in a goroutine until the test ends.
func startLoop(t testing.TB, l *Loop) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- l.Run() }()
	t.Cleanup(func() {
		l.Stop()
		if err := receive(t, done); err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}

func receive[T any](t testing.TB, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(deadline):
		t.Fatal("nothing happened within the deadline")
	}
	return v
}
