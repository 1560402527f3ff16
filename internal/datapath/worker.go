// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/bulk"
	"github.com/xskfwd/xskfwd/internal/epoll"
	"github.com/xskfwd/xskfwd/napi"
)

// publishEvery is how often a busy worker publishes its cut: often enough for
// any scrape or drain to look current, seldom enough to cost nothing. A worker
// publishes before it sleeps in any case.
const publishEvery = time.Millisecond

// WorkerConfig describes a worker.
type WorkerConfig struct {
	ID   int
	CPU  int // -1: not pinned
	Mode napi.Mode
	// DriveDevice makes a worker that finds nothing to do run the devices' own
	// NAPI by a system call each, instead of giving way. It is for sockets in
	// preferred busy polling, whose interrupts stay off.
	DriveDevice bool
	// Mems is how many memory ids there are, so that counting by id never
	// grows a slice during a poll.
	Mems int
}

// TimerConfig is how the TX coalesce timers of a worker's queues work.
type TimerConfig struct {
	Delay  time.Duration // 0: no timer
	Frames int
	Arm    napi.ArmRule
}

// Worker is one thread that polls its queues. Make it, Add its queues, Run it
// on a goroutine of its own, Stop it, and Close it once Run has returned.
type Worker struct {
	cfg    WorkerConfig
	waiter *epoll.Waiter
	loop   *napi.Loop
	queues []*Queue
	timers []*epoll.Timer

	out published

	// Owner: the worker's thread.
	start         time.Time
	now           int64 // ns since start, as the loop last read its clock
	lastPublished int64
	turn          uint64 // polls
	pollTimes     PollTimes

	// beat is now while the worker is awake, 0 while it sleeps. Written by the
	// worker, read by whoever wants to know whether it is stuck.
	beat atomic.Int64
}

// NewWorker opens what the worker waits on.
func NewWorker(cfg WorkerConfig) (*Worker, error) {
	waiter, err := epoll.New()
	if err != nil {
		return nil, fmt.Errorf("worker %d: %w", cfg.ID, err)
	}
	w := &Worker{cfg: cfg, waiter: waiter, start: time.Now()}
	yield := epoll.Yield
	if cfg.DriveDevice {
		yield = w.driveDevices
	}
	w.loop, err = napi.NewLoop(napi.LoopConfig{
		Waiter: waiter, Clock: w.clock, Mode: cfg.Mode, Yield: yield,
		EndOfRound: w.endOfRound, BeforeSleep: w.beforeSleep,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("worker %d: %w", cfg.ID, err), waiter.Close())
	}
	return w, nil
}

// driveDevices busy polls the device behind each queue once.
func (w *Worker) driveDevices() {
	for _, q := range w.queues {
		q.sock.KickRx()
	}
}

// clock is the loop's clock. What it last said is kept for the callbacks, which
// then need no clock of their own.
func (w *Worker) clock() int64 {
	w.now = int64(time.Since(w.start))
	w.beat.Store(w.now)
	return w.now
}

// Age is how long the worker has been in the poll it is in. It is 0 for one that
// sleeps, however long it does. Any goroutine.
func (w *Worker) Age() time.Duration {
	if beat := w.beat.Load(); beat != 0 {
		return time.Since(w.start) - time.Duration(beat)
	}
	return 0
}

// Add gives the worker a queue: its Napi, its timer, its event sources. Before
// Run only.
func (w *Worker) Add(q *Queue, tc TimerConfig) error {
	if err := w.add(q, tc); err != nil {
		return fmt.Errorf("worker %d: port %s queue %d: %w", w.cfg.ID, q.port, q.number, err)
	}
	w.queues = append(w.queues, q)
	return nil
}

func (w *Worker) add(q *Queue, tc TimerConfig) error {
	q.stats = &bulk.Stats{ByMem: make([]bulk.Returned, w.cfg.Mems)}
	q.napi = napi.New(fmt.Sprintf("%s-%d", q.port, q.number), polled{q, w}, Weight)
	q.tx.napi = q.napi
	timer, err := w.newTimer()
	if err != nil {
		return err
	}
	retry, err := w.newTimer()
	if err != nil {
		return err
	}
	q.again, q.untimed = again{timer: retry, wait: againDelay}, tc.Delay == 0
	q.tx.timer, err = napi.NewTxTimer(q.napi, timer, napi.TxTimerConfig{Delay: tc.Delay, Frames: tc.Frames, Rule: tc.Arm})
	if err != nil {
		return err
	}
	index := w.loop.Add(q.napi)
	if err := w.waiter.Add(timer.FD(), napi.Event{Napi: index, Source: napi.SourceTimer}); err != nil {
		return err
	}
	if err := w.waiter.Add(retry.FD(), napi.Event{Napi: index, Source: napi.SourceKick}); err != nil {
		return err
	}
	if fd := q.sock.FD(); fd >= 0 { // a fake has none
		return w.waiter.Add(fd, napi.Event{Napi: index, Source: napi.SourceIRQ})
	}
	return nil
}

// polled is a queue as its worker's loop polls it.
type polled struct {
	*Queue
	w *Worker
}

// Poll is Queue.Poll, one in sampleEvery of them timed. If the worker was about
// to sleep it is not any more, and a poll that hangs has to show.
func (p polled) Poll(budget int) int {
	if p.w.beat.Load() == 0 {
		p.w.clock()
	}
	p.w.turn++
	if p.w.turn%sampleEvery != 0 {
		return p.Queue.Poll(budget)
	}
	start := time.Now()
	work := p.Queue.Poll(budget)
	p.w.pollTimes.observe(time.Since(start))
	return work
}

// newTimer makes a timer that Close closes.
func (w *Worker) newTimer() (*epoll.Timer, error) {
	timer, err := epoll.NewTimer()
	if err == nil {
		w.timers = append(w.timers, timer)
	}
	return timer, err
}

// Run polls until Stop. It locks the goroutine to its thread, which dies with
// it, because the thread is pinned.
func (w *Worker) Run() error {
	runtime.LockOSThread()
	err := w.pin()
	if err == nil {
		err = w.loop.Run()
	}
	w.out.publishLast(w.cut)
	w.beat.Store(0)
	if err != nil {
		return fmt.Errorf("worker %d: %w", w.cfg.ID, err)
	}
	return nil
}

// pin keeps the thread on the worker's CPU.
func (w *Worker) pin() error {
	if w.cfg.CPU < 0 {
		return nil
	}
	var set unix.CPUSet
	set.Set(w.cfg.CPU)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin to cpu %d: %w", w.cfg.CPU, err)
	}
	return nil
}

// Stop makes Run return after the round it is in. Any goroutine.
func (w *Worker) Stop() { w.loop.Stop() }

// Kick schedules all queues, so that completions are read and counters
// published even if nothing happens on the wire. Any goroutine.
func (w *Worker) Kick() {
	for _, q := range w.queues {
		q.napi.Schedule(napi.SourceKick)
	}
}

// Close releases what the worker waits on. After Run has returned.
func (w *Worker) Close() error {
	var errs []error
	for _, t := range w.timers {
		errs = append(errs, t.Close())
	}
	return errors.Join(append(errs, w.waiter.Close())...)
}

// ID is the worker's number, CPU where it is pinned (-1: nowhere).
func (w *Worker) ID() int  { return w.cfg.ID }
func (w *Worker) CPU() int { return w.cfg.CPU }

// Cut copies the last published cut into dst, reusing its memory. Any
// goroutine.
func (w *Worker) Cut(dst *WorkerCut) { w.out.read(dst) }

// endOfRound publishes now and then.
func (w *Worker) endOfRound() {
	if w.now-w.lastPublished >= int64(publishEvery) && w.publish() {
		w.lastPublished = w.now
	}
}

// beforeSleep publishes, so that what a sleeping worker shows is current. If a
// reader is in the way, the worker polls once more instead of sleeping.
func (w *Worker) beforeSleep() {
	if !w.publish() && len(w.queues) > 0 {
		w.queues[0].napi.Schedule(napi.SourceKick)
		return
	}
	w.beat.Store(0)
}

// publish makes a cut of all queues. Owner: the worker, between two polls.
func (w *Worker) publish() bool { return w.out.publish(w.cut) }

// cut makes the cut.
func (w *Worker) cut(c *WorkerCut) {
	c.Loop = w.loop.Stats()
	c.PollTimes = w.pollTimes
	if c.Queues == nil {
		c.Queues = make([]QueueCut, len(w.queues))
	}
	for i, q := range w.queues {
		q.cut(&c.Queues[i])
	}
}
