// SPDX-License-Identifier: Apache-2.0

package pagepool

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

const (
	// ringBatch is how many consumed slots a consumer gathers before it clears them: two cache lines of 64 bytes, as in the
	// kernel's ptr_ring. Smaller: the producer of a full ring fights for the line the consumer clears. Larger: more slots
	// of a full ring lie idle (ringBatch-1 at most).
	ringBatch = 16

	// maxRingSlots bounds a ring at 128 MiB of slots, so that a size read from a wrong place is an error and not an
	// allocation that ends the process.
	maxRingSlots = 1 << 24

	// cacheLine is the distance kept between fields that different goroutines write: two lines of 64 bytes, because
	// prefetchers fetch lines in pairs, or one line of the arm64 machines that have 128. Smaller: false sharing. Larger:
	// memory for nothing.
	cacheLine = 128
)

// errRingClosed is what Resize returns after Cleanup.
var errRingClosed = errors.New("ring is closed")

// linePad keeps the fields before it and after it on different cache lines, wherever the struct begins.
type linePad [cacheLine]byte

// PtrRing is a bounded FIFO of pages for many producers and many consumers. The zero PtrRing has no slots: it is full and
// empty at once. [PtrRing.Resize] gives it slots, [NewPtrRing] does both.
//
// An empty slot holds the zero Page, and that is all that the two sides tell each other: a producer stops at a slot that
// is not zero, a consumer at one that is.
//
// Invariant: in the order of the ring the slots are [tail, head) consumed but not yet cleared, [head, producer) pages,
// [producer, tail) zero. Hence a consumer reaches a page of a bulk only through the first one, and a producer reaches a
// cleared slot only through the lowest of its batch: only those two need an atomic store.
type PtrRing struct {
	// slots is read under either lock and changed (by Resize and Cleanup) under both. Its elements are the queue.
	slots []Page
	// batch is how many consumed slots are cleared at once. Changes with slots.
	batch int
	// closed is set by Cleanup and never cleared. Changes with slots.
	closed bool
	_      linePad

	// producerLock guards the fields up to the next pad.
	producerLock sync.Mutex
	// producer is the slot that the next page goes to. Always in [0, len(slots)), 0 without slots.
	producer int
	// counts is what the producers did since the ring was made.
	counts RingCounts
	_      linePad

	// consumerLock guards the fields up to the next pad. Taken before producerLock where both are needed.
	consumerLock sync.Mutex
	// head is the slot that the next page is taken from. Always in [0, len(slots)), 0 without slots.
	head int
	// tail is the lowest slot that was consumed and is not cleared.
	// Invariant: tail <= head and head-tail < batch between two calls.
	tail int
	_    linePad
}

// RingCounts is what the producers of a ring did.
type RingCounts struct {
	// Produced is the number of pages that went into the ring.
	Produced uint64
	// Refused is the number of pages for which the ring had no slot. A zero Page in a bulk counts as the ring's end.
	Refused uint64
	// ProduceFull is the number of calls that found the ring full: calls with at least one page refused.
	ProduceFull uint64
}

// NewPtrRing returns an empty ring of any size from 1.
func NewPtrRing(size int) (*PtrRing, error) {
	r := new(PtrRing)
	if _, err := r.Resize(size); err != nil {
		return nil, err
	}
	return r, nil
}

// Produce puts p at the end of the ring. False: the ring is full and nothing has changed. The zero Page is refused too.
func (r *PtrRing) Produce(p Page) bool {
	r.producerLock.Lock()
	ok := r.produce(p)
	r.producerLock.Unlock()
	return ok
}

// ProduceBulk puts ps at the end of the ring under one lock, in order, as far as they fit or up to a zero Page, and
// returns how many went in. It does not keep ps.
func (r *PtrRing) ProduceBulk(ps []Page) int {
	if len(ps) == 0 {
		return 0
	}
	r.producerLock.Lock()
	n := r.produceRun(ps)
	if n < len(ps) && r.producer == 0 {
		n += r.produceRun(ps[n:])
	}
	r.counts.Produced += uint64(n)
	if n < len(ps) {
		r.counts.Refused += uint64(len(ps) - n)
		r.counts.ProduceFull++
	}
	r.producerLock.Unlock()
	return n
}

// produce is Produce under the producer lock.
func (r *PtrRing) produce(p Page) bool {
	slots, i := r.slots, r.producer
	if p == 0 {
		return false
	}
	if uint(i) >= uint(len(slots)) || atomic.LoadUint64((*uint64)(&slots[i])) != 0 {
		r.counts.Refused++
		r.counts.ProduceFull++
		return false
	}
	// Ordering: release; pairs with the load in consume and consumeRun. Whoever takes the page sees what its last holder
	// wrote.
	atomic.StoreUint64((*uint64)(&slots[i]), uint64(p))
	if i++; i == len(slots) {
		i = 0
	}
	r.producer = i
	r.counts.Produced++
	return true
}

// produceRun fills free slots from the producer index up to the end of the queue at most, under the producer lock.
func (r *PtrRing) produceRun(ps []Page) int {
	slots := r.slots[r.producer:]
	slots = slots[:min(len(slots), len(ps))]
	n := freeSlots(slots, ps)
	if n == 0 {
		return 0
	}
	copy(slots[1:n], ps[1:n])
	// Ordering: release; pairs with the load in consume and consumeRun. A consumer comes to the slots above only after it
	// has seen this one, so they are written before, plainly.
	atomic.StoreUint64((*uint64)(&slots[0]), uint64(ps[0]))
	r.producer += n
	if r.producer == len(r.slots) {
		r.producer = 0
	}
	return n
}

// freeSlots returns how many of the first slots are free and have a page of ps to go to them.
func freeSlots(slots, ps []Page) int {
	ps = ps[:len(slots)]
	for i := range slots {
		// Ordering: acquire; pairs with the store in discard. The slots above one that is found zero were cleared before.
		if atomic.LoadUint64((*uint64)(&slots[i])) != 0 || ps[i] == 0 {
			return i
		}
	}
	return len(slots)
}

// Consume takes the oldest page, or returns 0 when the ring is empty.
func (r *PtrRing) Consume() Page {
	r.consumerLock.Lock()
	p := r.consume()
	r.consumerLock.Unlock()
	return p
}

// ConsumeBatch takes the oldest pages into dst under one lock, as many as there are and fit, and returns how many.
func (r *PtrRing) ConsumeBatch(dst []Page) int {
	if len(dst) == 0 {
		return 0
	}
	r.consumerLock.Lock()
	n := r.consumeRun(dst)
	if n < len(dst) && r.head == 0 {
		n += r.consumeRun(dst[n:])
	}
	r.consumerLock.Unlock()
	return n
}

// consume is Consume under the consumer lock.
func (r *PtrRing) consume() Page {
	slots, i := r.slots, r.head
	if uint(i) >= uint(len(slots)) {
		return 0
	}
	// Ordering: acquire; pairs with the stores in produce and produceRun.
	p := Page(atomic.LoadUint64((*uint64)(&slots[i])))
	if p != 0 {
		r.discard(1)
	}
	return p
}

// consumeRun takes pages from the head up to the end of the queue at most, under the consumer lock.
func (r *PtrRing) consumeRun(dst []Page) int {
	slots := r.slots[r.head:]
	slots = slots[:min(len(slots), len(dst))]
	n := copyPages(dst, slots)
	if n > 0 {
		r.discard(n)
	}
	return n
}

// copyPages copies the pages of slots up to the first empty one and returns how many.
func copyPages(dst, slots []Page) int {
	dst = dst[:len(slots)]
	for i := range slots {
		// Ordering: acquire; pairs with the stores in produce and produceRun.
		p := Page(atomic.LoadUint64((*uint64)(&slots[i])))
		if p == 0 {
			return i
		}
		dst[i] = p
	}
	return len(slots)
}

// discard moves the head over n consumed slots and clears what is behind it once a batch has come together, or at the end
// of the queue, which keeps a batch in one piece.
func (r *PtrRing) discard(n int) {
	r.head += n
	if r.head-r.tail < r.batch && r.head < len(r.slots) {
		return
	}
	done := r.slots[r.tail:r.head]
	for i := len(done) - 1; i > 0; i-- {
		done[i] = 0
	}
	// Ordering: release; pairs with the loads in produce and produceRun. A producer stops at this slot, the lowest of the
	// batch, so those above are cleared before it, plainly, and the producer finds all of them free at once.
	atomic.StoreUint64((*uint64)(&done[0]), 0)
	if r.head == len(r.slots) {
		r.head = 0
	}
	r.tail = r.head
}

// Full reports whether a Produce would find no slot. Up to 15 slots of a ring of 32 or more may be consumed but not yet
// free.
func (r *PtrRing) Full() bool {
	r.producerLock.Lock()
	full := r.producer >= len(r.slots) || atomic.LoadUint64((*uint64)(&r.slots[r.producer])) != 0
	r.producerLock.Unlock()
	return full
}

// Empty reports whether a Consume would find no page.
func (r *PtrRing) Empty() bool {
	r.consumerLock.Lock()
	empty := r.head >= len(r.slots) || atomic.LoadUint64((*uint64)(&r.slots[r.head])) == 0
	r.consumerLock.Unlock()
	return empty
}

// Len returns the number of pages in the ring. It stops both sides, so it is for tests, status and metrics.
func (r *PtrRing) Len() int {
	r.lockBoth()
	defer r.unlockBoth()
	return r.length()
}

// Size returns the number of slots.
func (r *PtrRing) Size() int {
	r.producerLock.Lock()
	defer r.producerLock.Unlock()
	return len(r.slots)
}

// Counts returns what the producers did so far.
func (r *PtrRing) Counts() RingCounts {
	r.producerLock.Lock()
	defer r.producerLock.Unlock()
	return r.counts
}

// Resize gives the ring another number of slots. The pages keep their order; the newest ones that no longer fit are
// handed back. They are not counted as refused, for no producer sees them.
func (r *PtrRing) Resize(size int) ([]Page, error) {
	if size < 1 || size > maxRingSlots {
		return nil, fmt.Errorf("ring size %d: must be 1 to %d", size, maxRingSlots)
	}
	slots := make([]Page, size)

	r.lockBoth()
	defer r.unlockBoth()
	if r.closed {
		return nil, errRingClosed
	}
	pages := r.drain()
	kept := copy(slots, pages)
	r.slots = slots
	r.batch = batchFor(size)
	r.head, r.tail = 0, 0
	r.producer = kept % size
	return pages[kept:], nil
}

// Cleanup closes the ring for ever and hands back the pages in it. Afterwards the ring is full for producers and empty for
// consumers. Calling it again hands back nothing.
func (r *PtrRing) Cleanup() []Page {
	r.lockBoth()
	defer r.unlockBoth()
	pages := r.drain()
	r.closed = true
	r.slots = nil
	r.head, r.tail, r.producer = 0, 0, 0
	return pages
}

// batchFor returns the number of consumed slots to clear at once in a ring of size slots. Small rings clear each slot at
// once: held back slots would be a large part of them.
func batchFor(size int) int {
	if size < 2*ringBatch {
		return 1
	}
	return ringBatch
}

// drain copies out the pages in order, under both locks. The slots keep them: the caller replaces the slots.
func (r *PtrRing) drain() []Page {
	n := r.length()
	if n == 0 {
		return nil
	}
	pages := make([]Page, 0, n)
	first := min(n, len(r.slots)-r.head)
	pages = append(pages, r.slots[r.head:r.head+first]...)
	return append(pages, r.slots[:n-first]...)
}

// length is Len under both locks.
func (r *PtrRing) length() int {
	switch n := r.producer - r.head; {
	case n > 0:
		return n
	case n < 0:
		return n + len(r.slots)
	case len(r.slots) > 0 && r.slots[r.head] != 0:
		return len(r.slots)
	}
	return 0
}

func (r *PtrRing) lockBoth() {
	r.consumerLock.Lock()
	r.producerLock.Lock()
}

func (r *PtrRing) unlockBoth() {
	r.producerLock.Unlock()
	r.consumerLock.Unlock()
}
