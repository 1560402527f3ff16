// SPDX-License-Identifier: Apache-2.0

package epoll

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/napi"
)

// txRig is an instance that reaps a ring of frames, which a device completes at once.
type txRig struct {
	*rig
	napi  *napi.Napi
	queue *queue
	timer *napi.TxTimer
}

func newTxRig(t testing.TB, mode napi.Mode, cfg napi.TxTimerConfig) *txRig {
	t.Helper()
	r := &txRig{rig: newRig(t, napi.LoopConfig{Mode: mode, EventInterval: 5 * time.Microsecond}), queue: &queue{}}
	r.napi = napi.New("tx", r.queue, 0)
	kernel := newTimer(t)
	timer, err := napi.NewTxTimer(r.napi, kernel, cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.timer = timer
	r.queue.onPoll = func() { timer.Reaped(timer.Unreaped()) }
	mustAdd(t, r.w, kernel.FD(), napi.Event{Napi: r.loop.Add(r.napi), Source: napi.SourceTimer})
	return r
}

func TestTxTimerBringsEachFrameHomeWithoutLaterTraffic(t *testing.T) {
	for _, mode := range []napi.Mode{napi.Interrupt, napi.Adaptive, napi.Busy} {
		for _, rule := range []napi.ArmRule{napi.ArmIdle, napi.ArmAlways} {
			t.Run(mode.String()+"/"+rule.String(), func(t *testing.T) {
				r := newTxRig(t, mode, napi.TxTimerConfig{Delay: 20 * time.Microsecond, Frames: 25, Rule: rule})
				r.run(t)
				stress(t, 20_000, func(i int64) bool {
					dawdle()
					if i%3 == 0 {
						r.napi.Schedule(napi.SourceKick) // sometimes a poll is on its way already
					}
					r.timer.Sent(1)
					return await(t, "the frame", func() bool { return r.timer.Unreaped() == 0 })
				})
				s := r.timer.Stats()
				if s.Failed != 0 {
					t.Errorf("%d starts failed", s.Failed)
				}
				if rule == napi.ArmIdle && s.Syscalls > s.Fired+s.Late+1 {
					t.Errorf("%d system calls for %d expiries: a running timer was started", s.Syscalls, s.Fired+s.Late)
				}
			})
		}
	}
}

func TestTxTimerSentByManyWorkersBringsAllHome(t *testing.T) {
	r := newTxRig(t, napi.Adaptive, napi.TxTimerConfig{Delay: 50 * time.Microsecond, Frames: 25})
	r.run(t)
	for range 20 {
		var workers sync.WaitGroup
		for range 3 {
			workers.Go(func() {
				for i := range 300 {
					r.timer.Sent(1)
					if i%16 == 0 {
						runtime.Gosched()
					}
				}
			})
		}
		workers.Wait()
		if !await(t, "the frames", func() bool { return r.timer.Unreaped() == 0 }) {
			return
		}
	}
}

// TestLoopOutlastsSignals sends the signal by which the Go runtime preempts, as fast as
// it can, to the thread that waits.
func TestLoopOutlastsSignals(t *testing.T) {
	r := newRig(t, napi.LoopConfig{Mode: napi.Interrupt})
	q, fd := &queue{looked: true}, newEventFD(t)
	mustAdd(t, r.w, int(fd), napi.Event{Napi: r.loop.Add(napi.New("n", q, 0)), Source: napi.SourceIRQ})
	r.run(t)
	var stop atomic.Bool
	var sent atomic.Int64
	storm := make(chan struct{})
	go func() {
		defer close(storm)
		for !stop.Load() {
			if err := unix.Kill(unix.Getpid(), unix.SIGURG); err != nil {
				t.Error(err)
				return
			}
			sent.Add(1)
			runtime.Gosched()
		}
	}()
	stress(t, 5_000, func(i int64) bool {
		q.supply.Add(1)
		fd.signal(t)
		return await(t, "the packet", func() bool { return q.handled.Load() == i+1 })
	})
	await(t, "some signals", func() bool { return sent.Load() > 1000 || t.Failed() })
	stop.Store(true)
	receive(t, storm)
}

// TestWaitIsNotEndedByASignal interrupts one thread that is known to be in Wait.
func TestWaitIsNotEndedByASignal(t *testing.T) {
	w := newWaiter(t)
	thread, result := make(chan int, 1), make(chan int, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		thread <- unix.Gettid()
		n, err := w.Wait(-1, make([]napi.Event, 4))
		if err != nil {
			t.Error(err)
		}
		result <- n
	}()
	tid := receive(t, thread)
	for range 2000 {
		if err := unix.Tgkill(unix.Getpid(), tid, unix.SIGURG); err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
	select {
	case n := <-result:
		t.Fatalf("Wait returned %d events after a signal", n)
	default:
	}
	if err := w.Wake(); err != nil {
		t.Fatal(err)
	}
	if n := receive(t, result); n != 1 {
		t.Errorf("%d events, want the doorbell", n)
	}
}

// TestLoopOnOneProcessorStarvesNobody runs a loop of each mode with GOMAXPROCS=1, where
// everything this test does has to fit in beside it.
func TestLoopOnOneProcessorStarvesNobody(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	for _, mode := range []napi.Mode{napi.Busy, napi.Adaptive, napi.Interrupt} {
		t.Run(mode.String(), func(t *testing.T) {
			r := newRig(t, napi.LoopConfig{Mode: mode})
			q := &queue{looked: true}
			n := napi.New("n", q, 0)
			r.loop.Add(n)
			done := make(chan error, 1)
			go func() {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				done <- r.loop.Run()
			}()
			for i := range int64(20) {
				q.supply.Add(1)
				n.Schedule(napi.SourceKick)
				if !await(t, "the packet", func() bool { return q.handled.Load() == i+1 }) {
					return
				}
			}
			n.Disable()
			n.Enable()
			r.loop.Remove(n)
			r.loop.Stop()
			if err := receive(t, done); err != nil {
				t.Error(err)
			}
		})
	}
}

// perishable is a Poller whose memory goes away, as a ring's does when its port is closed.
type perishable struct {
	queue
	gone    atomic.Bool
	touched atomic.Int64 // how often it was entered after it was gone
}

func (p *perishable) check() {
	if p.gone.Load() {
		p.touched.Add(1)
	}
}

func (p *perishable) Poll(budget int) int {
	p.check()
	defer p.check()
	return p.queue.Poll(budget)
}

func (p *perishable) Pending() bool {
	p.check()
	defer p.check()
	return p.queue.Pending()
}

func TestLoopNeverEntersAnInstanceThatWasRemoved(t *testing.T) {
	for _, mode := range []napi.Mode{napi.Interrupt, napi.Adaptive, napi.Busy} {
		t.Run(mode.String(), func(t *testing.T) {
			r := newRig(t, napi.LoopConfig{Mode: mode})
			stayer := &queue{looked: true}
			r.loop.Add(napi.New("stayer", stayer, 0))
			r.run(t)
			stress(t, 2_000, func(int64) bool {
				p := &perishable{queue: queue{looked: true}}
				n := napi.New("leaver", p, 0)
				r.loop.Add(n)
				stayer.supply.Add(100)
				p.supply.Add(1000)
				n.Schedule(napi.SourceKick)
				dawdle()
				r.loop.Remove(n)
				p.gone.Store(true)
				n.Schedule(napi.SourceKick)
				dawdle()
				if touched := p.touched.Load(); touched != 0 {
					t.Errorf("entered %d times after Remove", touched)
					return false
				}
				return true
			})
		})
	}
}

func TestLoopAndItsWaiterLeaveNoDescriptor(t *testing.T) {
	before := openDescriptors(t)
	t.Run("life", func(t *testing.T) {
		for range 5 {
			r := newTxRig(t, napi.Adaptive, napi.TxTimerConfig{Delay: time.Millisecond, Frames: 25})
			r.run(t)
			r.timer.Sent(30)
			await(t, "the frames", func() bool { return r.timer.Unreaped() == 0 })
		}
	})
	if after := openDescriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func TestLoopAsleepIsWokenByNothingButEvents(t *testing.T) {
	for _, mode := range []napi.Mode{napi.Interrupt, napi.Adaptive} {
		t.Run(mode.String(), func(t *testing.T) {
			var polls atomic.Int64
			r := newRig(t, napi.LoopConfig{Mode: mode})
			n := napi.New("idle", &queue{looked: true, onPoll: func() { polls.Add(1) }}, 0)
			kernel := newTimer(t)
			mustAdd(t, r.w, kernel.FD(), napi.Event{Napi: r.loop.Add(n), Source: napi.SourceTimer})
			done := make(chan error, 1)
			go func() { done <- r.loop.Run() }()
			await(t, "the first poll", func() bool { return polls.Load() == 1 })
			if err := kernel.Start(20 * time.Millisecond); err != nil {
				t.Fatal(err)
			}
			await(t, "the second poll", func() bool { return polls.Load() == 2 })
			r.loop.Stop()
			if err := receive(t, done); err != nil {
				t.Fatal(err)
			}
			// Two sleeps at most: until the timer, and until Stop.
			if s := r.loop.Stats(); s.Sleeps > 2 || s.Looks != 0 || s.Spins != 0 || s.Polls != 2 {
				t.Errorf("%d sleeps, %d looks, %d spins, %d polls in 20 ms without traffic", s.Sleeps, s.Looks, s.Spins, s.Polls)
			}
		})
	}
}
