// SPDX-License-Identifier: Apache-2.0

package bulk

import "github.com/xskfwd/xskfwd/pagepool"

// Reason says why a bulk was flushed.
type Reason uint8

const (
	// Full: the queue holds as many pages as it may.
	Full Reason = iota
	// PoolChange: a page of another pool came under rule Change, or of the 17th pool in one loop under rule Partition.
	PoolChange
	// EndOfPoll: the completion loop is over.
	EndOfPoll

	reasons = 3
)

// String returns the reason as it is called in metrics.
func (r Reason) String() string {
	switch r {
	case Full:
		return "full"
	case PoolChange:
		return "pool_change"
	case EndOfPoll:
		return "poll_end"
	}
	return "unknown"
}

// Stats counts what the FrameBulks of one worker did. A bulk is what one pool got in one call, so that a queue with pages
// of three pools is flushed as three bulks.
//
// Owner: plain fields, written by the worker that flushes. Others get copies which it makes.
//
// Invariant: Pages = sum of Flushed + Immediate + Unknown.
// Invariant: sum of Flushes = sum of Length, and sum of Flushed = sum of i * Length[i].
// Invariant: sum of Flushed = sum of all fields of all ByMem.
type Stats struct {
	// Pages is the number of pages that have left the queue on any way.
	Pages uint64
	// Flushes is the number of bulks, by Reason.
	Flushes [reasons]uint64
	// Flushed is the number of pages in those bulks, by Reason.
	Flushed [reasons]uint64
	// Length is the number of bulks, by length. Length[0] is always 0.
	Length [QueueSize + 1]uint64
	// Lookups is the number of times the table was asked.
	Lookups uint64
	// Immediate is the number of pages of no pool, which their memory's function took at once.
	Immediate uint64
	// Unknown is the number of pages whose memory is not in the table. They could not be returned: each is a lost page.
	Unknown uint64
	// ByMem says where the pages went, by MemID. See Grow.
	ByMem []Returned
}

// Returned is where the pages of one memory went; the fields mean what those of [pagepool.PutCount] mean.
type Returned struct {
	Cached   uint64
	Ring     uint64
	Released uint64
	Shared   uint64
}

// Grow makes room in ByMem for all memories smaller than n, such as table.Len(). Call it between polls, when memories were
// registered; a memory for which that was forgotten costs one allocation in a poll.
func (s *Stats) Grow(n int) {
	if n > len(s.ByMem) {
		s.ByMem = append(s.ByMem, make([]Returned, n-len(s.ByMem))...)
	}
}

// count adds a bulk of n pages of memory id.
func (s *Stats) count(why Reason, id pagepool.MemID, n int, c pagepool.PutCount) {
	s.Pages += uint64(n)
	s.Flushes[why]++
	s.Flushed[why] += uint64(n)
	s.Length[n]++
	if int(id) >= len(s.ByMem) {
		s.Grow(int(id) + 1)
	}
	r := &s.ByMem[id]
	r.Cached += uint64(c.Cached)
	r.Ring += uint64(c.Ring)
	r.Released += uint64(c.Released)
	r.Shared += uint64(c.Shared)
}
