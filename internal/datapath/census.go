// SPDX-License-Identifier: Apache-2.0

package datapath

// Census says where the pages of one pool are. Every page is in one place.
type Census struct {
	Cache int64 // the pool's lockless cache
	Ring  int64 // the pool's PtrRing
	Fill  int64 // fill ring, or taken from it by the driver
	Rx    int64 // RX ring
	Tx    int64 // some TX ring, or the driver, or an skb that was made of it
	Done  int64 // a completion ring
	// Held pages are in the hands of a worker. A worker publishes between two
	// polls, when it holds none: whatever stays here is a leak.
	Held int64
}

// Sum is how many pages the pool has of the UMEM.
func (c Census) Sum() int64 { return c.Cache + c.Ring + c.Fill + c.Rx + c.Tx + c.Done + c.Held }

// TakeCensus accounts for the pages of the pool that queue at belongs to, from
// the cuts of all queues of all workers.
//
// Every term is a difference of two counters: what the owner of one place has
// put in, and what the owner of the next has taken out. Each worker's cut is
// exact for the moment it was made, so with cuts made at different moments a
// page may seem to be in the place before, or (negative) the place after; the
// sum is exact all the same, since every hand-over is counted on both sides or
// on neither side of the sum.
func TakeCensus(at int, cuts []QueueCut) Census {
	q := &cuts[at]
	id := int(q.Pool.ID())
	var ringed, released, back, completions uint64
	for i := range cuts {
		if cuts[i].Tx == q.Egress {
			completions = uint64(cuts[i].Rings.Completion)
		}
		if id >= len(cuts[i].Bulk.ByMem) {
			continue
		}
		r := cuts[i].Bulk.ByMem[id]
		ringed += r.Ring
		released += r.Released
		back += r.Cached + r.Ring + r.Released
	}
	var c Census
	c.Cache = int64(q.PoolCounts.Cache)
	c.Ring = int64(ringed - q.PoolCounts.RingTaken)

	posted := int64(q.Counters.Posted - q.Counters.RxPackets)
	c.Rx = min(int64(q.Rings.Rx), posted)
	c.Fill = posted - c.Rx

	// Frames received are dropped (and returned at once) or transmitted; what
	// came back and was not dropped has been completed.
	out := int64(q.Counters.TxPackets - (back - q.Counters.Dropped()))
	c.Done = min(int64(completions), max(out, 0))
	c.Tx = out - c.Done

	pool := int64(q.PoolCounts.Hold - released)
	c.Held = pool - (c.Cache + c.Ring + posted + out)
	return c
}
