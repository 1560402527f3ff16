// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/bulk"
	"github.com/xskfwd/xskfwd/internal/xsk/xsktest"
)

// TestCensusIsWhatIsFoundByLooking walks at random and compares, after every
// poll, the census with a model in which each page is in exactly one place.
func TestCensusIsWhatIsFoundByLooking(t *testing.T) {
	kernels := map[string]xsktest.Config{
		"prompt":      {},
		"held":        {HoldCompletions: true},
		"small-rings": {FillEntries: 16, RxEntries: 8, TxEntries: 8, CompletionEntries: 4},
		"wrapping":    {FirstIndex: ^uint32(0) - 100, TxEntries: 16},
		"zerocopy":    {Zerocopy: true, HoldCompletions: true},
	}
	shapes := map[string]rigConfig{
		"one-worker":    {queues: []int{1, 1}, timer: defaultTimer()},
		"shared":        {queues: []int{2, 1}, workers: 3, timer: defaultTimer(), rule: bulk.Change},
		"four-ports":    {queues: []int{2, 2, 1, 1}, workers: 2, bulkSize: 1},
		"short-of-umem": {queues: []int{1, 1}, workers: 2, frames: 100, timer: defaultTimer()},
	}
	for kernel, k := range kernels {
		for shape, cfg := range shapes {
			cfg.kernel = k
			t.Run(kernel+"/"+shape, func(t *testing.T) {
				seed := rand.Uint64()
				t.Logf("seed %d", seed)
				walk(newRig(t, cfg), rand.New(rand.NewPCG(seed, 0)), 1500)
			})
		}
	}
}

// walk takes steps at random.
func walk(r *rig, rnd *rand.Rand, steps int) {
	number := uint64(0)
	for step := range steps {
		u := r.all[rnd.IntN(len(r.all))]
		switch rnd.IntN(16) {
		case 0, 1, 2, 3:
			for range rnd.IntN(40) {
				u.k.Deliver(frame(uint32(u.port), number, rnd.IntN(largest+40)))
				number++
			}
		case 4, 5, 6, 7, 8:
			u.q.Poll(1 + rnd.IntN(Weight))
			r.mustBeConsistent(fmt.Sprintf("step %d: polled %s", step, u.q.port))
			r.mustHaveCountedEachFrame()
		case 9:
			u.k.Transmit(rnd.IntN(20))
		case 10:
			u.k.Complete(rnd.IntN(40))
		case 11:
			u.k.SetLink(rnd.IntN(2) == 0)
		case 12:
			u.k.SetPeerBusy(rnd.IntN(4) == 0)
		case 13:
			u.k.SetNeedWakeup(rnd.IntN(2) == 0, rnd.IntN(3) > 0)
		case 14:
			u.k.SetFault([]unix.Errno{0, 0, unix.EAGAIN, unix.ENOBUFS, unix.EINVAL}[rnd.IntN(5)])
		case 15:
			u.maxBytes.Store(MaxFrameBytes(testMTU - 300*rnd.IntN(2)))
		}
	}
	r.comeHome()
}

// mustHaveCountedEachFrame holds the drop ledger against what came in.
func (r *rig) mustHaveCountedEachFrame() {
	r.t.Helper()
	for i, u := range r.all {
		if c := &u.q.c; c.RxPackets != c.TxPackets+c.Dropped() || c.Drops[DropUnset] != 0 {
			r.t.Fatalf("queue %d: received %d, handed over %d, dropped %v", i, c.RxPackets, c.TxPackets, c.Drops)
		}
	}
}

// comeHome lets all frames out and home; nothing may be on its way after it.
func (r *rig) comeHome() {
	r.t.Helper()
	for _, u := range r.all {
		u.k.SetLink(true)
		u.k.SetPeerBusy(false)
		u.k.SetNeedWakeup(false, true)
		u.k.SetFault(0)
	}
	for range 200 {
		for _, u := range r.all {
			u.q.Poll(Weight)
			u.k.Complete(64)
		}
	}
	r.mustBeConsistent("at the end")
	for i, u := range r.all {
		c := TakeCensus(i, r.cuts())
		if c.Rx+c.Tx+c.Done+c.Held != 0 {
			r.t.Errorf("census %d at the end: %+v", i, c)
		}
		expect(r.t, "bad completions", u.q.c.BadCompletions, 0)
		expect(r.t, "unreaped", u.q.tx.timer.Unreaped(), 0)
	}
}
