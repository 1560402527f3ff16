// SPDX-License-Identifier: Apache-2.0

package bulk

import "github.com/xskfwd/xskfwd/pagepool"

// QueueSize is how many pages a FrameBulk gathers: the kernel's XDP_BULK_QUEUE_SIZE, two cache lines of pages. Smaller:
// more locks per page. Larger: pages stay out longer, and a FrameBulk no longer fits the stack frame of a poll well.
const QueueSize = 16

// Relations between the constants, checked by the compiler: each line fails to build when it is false.
const (
	_ = -uint(QueueSize & (QueueSize - 1))          // the queue index is masked
	_ = uint(pagepool.RefillSize - QueueSize)       // a refill takes home at least a bulk
	_ = uint(pagepool.CacheSize - 4*QueueSize)      // a few bulks fit the cache
	_ = -uint(pagepool.DefaultRingSize % QueueSize) // full bulks do not wrap in the default ring
)

// Rule says when pages of different pools part.
type Rule uint8

const (
	// Partition queues pages of any pool and parts them by pool when the queue is flushed. The default, because bulks stay
	// long where completions of several pools interleave; docs/adr/0007-bulk-flush-rule.md has the figures.
	Partition Rule = iota
	// Change flushes the queue when a page of another pool comes, as the first kernel with bulks did.
	Change
)

// FrameBulk gathers the pages that come home in one completion loop. It is meant to be a local variable of that loop and
// must be Init'ed before use.
//
// Owner: the goroutine on whose stack it is.
type FrameBulk struct {
	// mem is the MemID of the page queued last, or noMem. Wider than a MemID, so that no page can name noMem.
	mem uint64
	// n is the number of pages in the queue. Invariant: n < size between two calls.
	n uint
	// size is at how many pages the queue is flushed.
	size uint
	// lane is the index in lanes of the pool of the page queued last.
	lane uint8
	// lanesUsed is how many of lanes are known.
	lanesUsed uint8
	// mixed: the queue may hold pages of more than one lane.
	mixed bool
	rule  Rule
	owner int
	table *MemTable
	stats *Stats

	// queue[:n] are the pages, queueLane[:n] their lanes.
	queue     [QueueSize]pagepool.Page
	queueLane [QueueSize]uint8
	// lanes[:lanesUsed] are the pools found so far. They are kept after a flush, so that their next page needs no lookup.
	// Rule Change uses only the first.
	lanes [QueueSize]lane
}

// lane is a pool which pages in the queue may belong to.
type lane struct {
	pool *pagepool.PagePool
	id   pagepool.MemID
}

// noMem is no MemID.
const noMem = 1 << 32

// Init makes the FrameBulk ready for one loop of the given owner, whose pools are those it puts pages to directly. size is
// the number of pages in a bulk, 1 to QueueSize; what is outside counts as the nearest. 1 turns bulking off: each page
// is returned on its own. st gets the counts, which may be shared with other FrameBulks of the same goroutine.
func (b *FrameBulk) Init(t *MemTable, owner int, size int, rule Rule, st *Stats) {
	b.mem = noMem
	b.n = 0
	b.size = uint(min(max(size, 1), QueueSize))
	b.lane = 0
	b.lanesUsed = 0
	b.mixed = false
	b.rule = rule
	b.owner = owner
	b.table = t
	b.stats = st
}

// Return gives back page p of memory id: to its pool when its bulk is flushed, or to its memory's own function at once. p
// must be a page: pools drop the zero Page, but it would be counted here.
func (b *FrameBulk) Return(p pagepool.Page, id pagepool.MemID) {
	if uint64(id) != b.mem && !b.selectLane(p, id) {
		return
	}
	n := b.n
	b.queue[n%QueueSize] = p
	b.queueLane[n%QueueSize] = b.lane
	b.n = n + 1
	if b.n >= b.size {
		b.flush(Full)
	}
}

// Flush returns what is queued. To be called at the end of the loop.
func (b *FrameBulk) Flush() {
	if b.n > 0 {
		b.flush(EndOfPoll)
	}
}

// selectLane makes the pool of memory id the current one. When the memory has no pool it returns p and reports false.
func (b *FrameBulk) selectLane(p pagepool.Page, id pagepool.MemID) bool {
	for i := range b.lanes[:min(b.lanesUsed, QueueSize)] {
		if b.lanes[i].id == id {
			b.useLane(uint8(i), id)
			return true
		}
	}
	b.stats.Lookups++
	mem := b.table.lookup(id)
	if mem.Pool == nil {
		b.returnAtOnce(p, mem)
		return false
	}
	b.useLane(b.addLane(mem.Pool, id), id)
	return true
}

// addLane makes room for a pool that is not yet known, and returns its index.
func (b *FrameBulk) addLane(pool *pagepool.PagePool, id pagepool.MemID) uint8 {
	if b.rule == Change || b.lanesUsed == QueueSize {
		if b.n > 0 {
			b.flush(PoolChange)
		}
		b.lanesUsed = 0
	}
	i := b.lanesUsed
	b.lanes[i%QueueSize] = lane{pool, id}
	b.lanesUsed = i + 1
	return i
}

// useLane says that the next pages belong to lane i.
func (b *FrameBulk) useLane(i uint8, id pagepool.MemID) {
	b.lane = i
	b.mem = uint64(id)
	b.mixed = b.mixed || b.n > 0
}

// returnAtOnce returns a page of no pool.
func (b *FrameBulk) returnAtOnce(p pagepool.Page, mem Mem) {
	b.stats.Pages++
	if mem.Return == nil {
		b.stats.Unknown++
		return
	}
	b.stats.Immediate++
	mem.Return(p)
}

// flush returns all pages in the queue to their pools.
func (b *FrameBulk) flush(why Reason) {
	n := b.n
	b.n = 0
	if !b.mixed {
		b.put(why, b.lane, b.queue[:n])
		return
	}
	b.mixed = false
	b.flushMixed(why, n)
}

// flushMixed parts the n pages in the queue by lane, in order within a lane, and returns each part as one bulk.
func (b *FrameBulk) flushMixed(why Reason, n uint) {
	// end[l] is where the part of lane l ends in parted; while it is filled, where its next page goes.
	var end [QueueSize]uint8
	for _, l := range b.queueLane[:n] {
		end[l%QueueSize]++
	}
	start := uint8(0)
	for l := range end[:b.lanesUsed] {
		start, end[l] = start+end[l], start
	}
	var parted [QueueSize]pagepool.Page
	for i, l := range b.queueLane[:n] {
		at := end[l%QueueSize]
		parted[at%QueueSize] = b.queue[i]
		end[l%QueueSize] = at + 1
	}
	start = 0
	for l := range end[:b.lanesUsed] {
		if end[l] > start {
			b.put(why, uint8(l), parted[start:end[l]])
		}
		start = end[l]
	}
}

// put returns pages of one lane as one bulk.
func (b *FrameBulk) put(why Reason, l uint8, pages []pagepool.Page) {
	to := &b.lanes[l%QueueSize]
	direct := to.pool.Owner() == b.owner
	var c pagepool.PutCount
	if len(pages) == 1 {
		c = to.pool.Put(pages[0], direct)
	} else {
		c = to.pool.PutBulk(pages, direct)
	}
	b.stats.count(why, to.id, len(pages), c)
}
