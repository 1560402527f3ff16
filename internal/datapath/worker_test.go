// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
	"github.com/xskfwd/xskfwd/napi"
)

func TestWorkerStopAndCloseLeaveNoDescriptor(t *testing.T) {
	before := openDescriptors(t)
	for range 10 {
		r := newRig(t, rigConfig{queues: []int{2, 1}, workers: 3, timer: defaultTimer()})
		r.run()
		deliver(t, r.all[0].k, frames(5)...)
		r.mustSend(r.unitOf(r.all[0].q.out.tx).k, 5)
		r.settle()
		for _, w := range r.workers {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	expect(t, "open descriptors", openDescriptors(t), before)
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestWorkerStopBeforeRunAndTwiceIsHarmless(t *testing.T) {
	r := newRig(t, rigConfig{mode: napi.Interrupt})
	r.workers[0].Stop()
	r.run()
	r.stop()
	r.workers[0].Stop()
}

func TestWorkerAgeIsThatOfThePollItIsIn(t *testing.T) {
	r := newRig(t, rigConfig{mode: napi.Interrupt, timer: defaultTimer()})
	w, out := r.workers[0], r.all[1]
	expect(t, "age before it runs", w.Age(), 0)
	r.run()
	r.silence()
	expect(t, "age while it sleeps", w.Age(), 0)

	stuck := w.stickIn(t, r.all[0], out)
	first := w.Age()
	labtest.WaitFor(t, "its age to grow", func() bool { return w.Age() > first })
	if first == 0 {
		t.Error("a worker in a poll has no age")
	}
	stuck()
	r.silence()
	expect(t, "age when it sleeps again", w.Age(), 0)
	r.stop()
	expect(t, "age after it has stopped", w.Age(), 0)
}

// stickIn makes the worker hang in a poll, waiting for a lock, until the
// function it returns is called.
func (w *Worker) stickIn(t *testing.T, in, out *unit) (release func()) {
	out.q.Tx().Share()
	out.q.Tx().mu.Lock()
	deliver(t, in.k, frames(1)...)
	labtest.WaitFor(t, "the worker to be in a poll", func() bool { return in.k.Socket.Rx.Len() == 0 })
	return out.q.Tx().mu.Unlock
}

// However the worker got into the poll, its age must show: a poll that begins
// right after the worker has made up its mind to sleep is one like any other.
func TestWorkerHasAnAgeInAPollThatPreventedASleep(t *testing.T) {
	r := newRig(t, rigConfig{timer: defaultTimer()})
	w, in, out := r.workers[0], r.all[0], r.all[1]
	w.beforeSleep() // a frame comes now
	deliver(t, in.k, frames(1)...)
	out.q.Tx().Share()
	out.q.Tx().mu.Lock()
	var age bool
	done := make(chan int)
	go func() { done <- polled{in.q, w}.Poll(Weight) }()
	labtest.WaitFor(t, "the poll to begin", func() bool { return in.k.Socket.Rx.Len() == 0 })
	age = w.beat.Load() != 0
	out.q.Tx().mu.Unlock()
	expect(t, "received", <-done, 1)
	expect(t, "the worker has an age in its poll", age, true)
}

func TestWorkerKickPublishesThoughNothingHappens(t *testing.T) {
	r := newRig(t, rigConfig{mode: napi.Interrupt, timer: TimerConfig{}})
	in, out := r.all[0], r.all[1]
	r.run()
	r.silence()
	deliver(t, in.k, frames(3)...)
	r.mustSend(out.k, 3)
	r.silence()
	// Nothing reaps: the timer is off, and three are fewer than any limit.
	expect(t, "completions", out.k.Socket.Completion.Len(), 3)
	r.workers[0].Kick()
	labtest.WaitFor(t, "the kick to show", func() bool { return r.published()[1].Counters.Completed == 3 })
	r.settle()
}

func TestWorkerRefusesACPUThatIsNotThere(t *testing.T) {
	w, err := NewWorker(WorkerConfig{CPU: 8191})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- w.Run() }()
	if err := <-done; err == nil {
		t.Error("pinned to a CPU that is not there")
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func TestWorkerRunsOnItsCPU(t *testing.T) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !allowed.IsSet(cpu) {
		cpu++
	}
	w, err := NewWorker(WorkerConfig{CPU: cpu})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan bool)
	go func() {
		runtime.LockOSThread() // dies pinned
		if err := w.pin(); err != nil {
			t.Error(err)
		}
		var set unix.CPUSet
		err := unix.SchedGetaffinity(0, &set)
		got <- err == nil && set.Count() == 1 && set.IsSet(cpu)
	}()
	expect(t, "pinned to its CPU alone", <-got, true)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
