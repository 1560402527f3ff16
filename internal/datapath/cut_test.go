// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
	"github.com/xskfwd/xskfwd/napi"
)

// readCuts reads cuts of all workers until end is called, and checks each: in
// a cut nobody holds a page, whatever the others' cuts show, and the places add
// up to what the pool has.
func (r *rig) readCuts() (end func(), read *atomic.Int64) {
	var done atomic.Bool
	var running sync.WaitGroup
	read = new(atomic.Int64)
	for range 2 {
		running.Go(func() {
			last := make([]QueueCut, len(r.all))
			for !done.Load() {
				cuts := r.published()
				if !r.checkCuts(cuts, last) {
					return
				}
				last = cuts
				read.Add(1)
			}
		})
	}
	return func() { done.Store(true); running.Wait() }, read
}

// checkCuts reports whether cuts that were read while workers run hold.
func (r *rig) checkCuts(cuts, last []QueueCut) bool {
	for i := range cuts {
		if cuts[i].Pool == nil {
			return true // a worker has not published yet
		}
	}
	for i := range cuts {
		c := TakeCensus(i, cuts)
		if c.Held != 0 || c.Cache < 0 || c.Fill < 0 || c.Rx < 0 {
			r.t.Errorf("census %d: %+v", i, c)
			return false
		}
		if c.Sum() != c.Cache+c.Ring+c.Fill+c.Rx+c.Tx+c.Done+c.Held {
			r.t.Errorf("census %d: %+v does not add up", i, c)
			return false
		}
		if now, before := cuts[i].Counters, last[i].Counters; now.RxPackets < before.RxPackets || now.Posted < before.Posted {
			r.t.Errorf("cut %d: counters went back: %+v after %+v", i, now, before)
			return false
		}
		if n := &cuts[i].Counters; n.RxPackets != n.TxPackets+n.Dropped() {
			r.t.Errorf("cut %d: received %d, handed over %d, dropped %d", i, n.RxPackets, n.TxPackets, n.Dropped())
			return false
		}
	}
	return true
}

func TestPublishGivesWayToAReader(t *testing.T) {
	r := newRig(t, rigConfig{})
	w := r.workers[0]
	expect(t, "published with nobody reading", w.publish(), true)
	w.out.mu.Lock()
	expect(t, "published with somebody reading", w.publish(), false)
	w.out.mu.Unlock()
	expect(t, "published afterwards", w.publish(), true)
}

func TestCutSharesNoMemoryWithTheNextOne(t *testing.T) {
	r := newRig(t, rigConfig{})
	in := r.all[0]
	w := r.workers[0]
	move := func() { deliver(t, in.k, frames(30)...); r.poll(); r.poll(); w.publish() }
	move()
	var a WorkerCut
	w.Cut(&a)
	before := a.Queues[1].Bulk.ByMem[1]
	if before.Cached == 0 {
		t.Fatal("no page came home")
	}
	move()
	expect(t, "an old cut after a publish", a.Queues[1].Bulk.ByMem[1], before)
	w.Cut(&a)
	expect(t, "a cut read into old memory", a.Queues[1].Bulk.ByMem[1].Cached, 2*before.Cached)
}

func TestWorkerSleepsOnlyWithACurrentCut(t *testing.T) {
	r := newRig(t, rigConfig{mode: napi.Interrupt, timer: defaultTimer()})
	w, in := r.workers[0], r.all[0]
	w.out.mu.Lock() // somebody reads and takes his time
	r.run()
	deliver(t, in.k, frames(3)...)
	r.mustSend(r.all[1].k, 3)
	labtest.WaitFor(t, "the worker to want to sleep", func() bool { return in.q.Napi().IsScheduled() })
	w.out.mu.Unlock()
	labtest.WaitFor(t, "its cut", func() bool { return r.published()[0].Counters.RxPackets == 3 })
	r.settle()
}

func TestWorkerPublishesItsLastCutWhoeverReads(t *testing.T) {
	r := newRig(t, rigConfig{mode: napi.Busy, timer: defaultTimer()})
	w, in := r.workers[0], r.all[0]
	r.run()
	labtest.WaitFor(t, "a first cut", func() bool { return r.published()[0].Pool != nil })
	w.out.mu.Lock()
	deliver(t, in.k, frames(3)...)
	r.mustSend(r.all[1].k, 3)
	w.Stop()
	for range 500 { // for long enough to end, if it did not wait
		unix.SyscallNoError(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
	w.out.mu.Unlock()
	r.stop()
	expect(t, "received, by the last cut", r.published()[0].Counters.RxPackets, 3)
	r.mustBeConsistent("after stop")
}
