// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"sync/atomic"

	"github.com/asavie/xdp"
	"golang.org/x/sys/unix"
)

// The four rings of a socket. On the fill and the TX ring user space produces
// and the kernel consumes; on the other two it is the other way round.
type (
	FillRing       = Producer[uint64]
	CompletionRing = Consumer[uint64]
	RxRing         = Consumer[xdp.Desc]
	TxRing         = Producer[xdp.Desc]
)

// Indices are the words of a ring which both sides see. They count entries,
// wrap at 2^32 and are only ever subtracted.
type Indices struct {
	Producer *uint32 // written by the producing side only
	Consumer *uint32 // written by the consuming side only
	Flags    *uint32 // written by the kernel only
}

// cacheLinePair is two cache lines of 64 bytes, which adjacent-line prefetchers
// fetch together. Rings of one socket may belong to different workers; less
// padding would make them invalidate each other's cached indices, more only
// takes memory.
const cacheLinePair = 128

// Producer is the user-space end of a ring which the kernel consumes.
//
// Owner: one goroutine at a time, but for Len and NeedWakeup, which any
// goroutine may call while the socket is open.
type Producer[T uint64 | xdp.Desc] struct {
	entries []T
	mask    uint32 // len(entries)-1
	// produced is our own index; the shared word is a copy of it.
	produced uint32
	// consumed is the kernel's index as last read. It may lag behind, which
	// makes the ring look fuller than it is, never emptier.
	//
	// Invariant: 0 <= produced-consumed <= len(entries).
	consumed uint32
	shared   Indices
	_        [cacheLinePair - 24 - 12 - 4 - 24]byte
}

// NewProducer makes the user-space end of a ring over shared memory. The number
// of entries must be a power of two.
func NewProducer[T uint64 | xdp.Desc](shared Indices, entries []T) (*Producer[T], error) {
	if err := ValidateRingSize("ring", uint32(len(entries))); err != nil {
		return nil, err
	}
	return &Producer[T]{
		entries:  entries,
		mask:     uint32(len(entries) - 1),
		produced: atomic.LoadUint32(shared.Producer),
		consumed: atomic.LoadUint32(shared.Consumer),
		shared:   shared,
	}, nil
}

// Reserve looks for room for n entries and returns the index of the first and
// how many there is room for, n at most. It changes nothing: entries count from
// Submit on.
func (r *Producer[T]) Reserve(n uint32) (idx, got uint32) {
	free := uint32(len(r.entries)) - (r.produced - r.consumed)
	if free < n {
		free = r.Free()
	}
	return r.produced, min(n, free)
}

// Set writes the entry at an index that Reserve gave room for.
func (r *Producer[T]) Set(idx uint32, e T) { r.entries[idx&r.mask] = e }

// Submit hands the first n reserved entries to the kernel. A NeedWakeup after it
// is ordered after it, so that a kernel about to sleep is not missed.
func (r *Producer[T]) Submit(n uint32) {
	r.produced += n
	// Ordering: release; pairs with the kernel's load-acquire of the producer
	// index. Entries written by Set are visible before the index covering them.
	atomic.StoreUint32(r.shared.Producer, r.produced)
}

// Free reads the kernel's index and returns how many entries there is room for.
func (r *Producer[T]) Free() uint32 {
	// Ordering: acquire. The kernel has read the entries before this index;
	// pairs with its store-release of the consumer index, and lets Set
	// overwrite them.
	r.consumed = atomic.LoadUint32(r.shared.Consumer)
	return uint32(len(r.entries)) - (r.produced - r.consumed)
}

// Len is how many entries the kernel has not taken yet.
func (r *Producer[T]) Len() uint32 { return r.shared.filled(uint32(len(r.entries))) }

// Entries is the size of the ring.
func (r *Producer[T]) Entries() uint32 { return uint32(len(r.entries)) }

// NeedWakeup reports whether the kernel waits for a system call before it looks
// at the ring.
func (r *Producer[T]) NeedWakeup() bool {
	return atomic.LoadUint32(r.shared.Flags)&unix.XDP_RING_NEED_WAKEUP != 0
}

// Consumer is the user-space end of a ring which the kernel produces.
//
// Owner: one goroutine at a time, but for Len, which any goroutine may call
// while the socket is open.
type Consumer[T uint64 | xdp.Desc] struct {
	entries []T
	mask    uint32 // len(entries)-1
	// consumed is our own index; the shared word is a copy of it.
	consumed uint32
	// produced is the kernel's index as last read. It may lag behind, which
	// makes the ring look emptier than it is, never fuller.
	//
	// Invariant: 0 <= produced-consumed <= len(entries).
	produced uint32
	shared   Indices
	_        [cacheLinePair - 24 - 12 - 4 - 24]byte
}

// NewConsumer makes the user-space end of a ring over shared memory. The number
// of entries must be a power of two.
func NewConsumer[T uint64 | xdp.Desc](shared Indices, entries []T) (*Consumer[T], error) {
	if err := ValidateRingSize("ring", uint32(len(entries))); err != nil {
		return nil, err
	}
	return &Consumer[T]{
		entries:  entries,
		mask:     uint32(len(entries) - 1),
		consumed: atomic.LoadUint32(shared.Consumer),
		produced: atomic.LoadUint32(shared.Consumer),
		shared:   shared,
	}, nil
}

// Peek looks for n entries and returns the index of the first and how many
// there are, n at most. It changes nothing: entries are ours until Release.
func (r *Consumer[T]) Peek(n uint32) (idx, got uint32) {
	avail := r.produced - r.consumed
	if avail < n {
		// Ordering: acquire. Pairs with the kernel's store-release of the
		// producer index: entries it covers are read after it.
		r.produced = atomic.LoadUint32(r.shared.Producer)
		avail = r.produced - r.consumed
	}
	return r.consumed, min(n, avail)
}

// At reads the entry at an index that Peek returned.
func (r *Consumer[T]) At(idx uint32) T { return r.entries[idx&r.mask] }

// Release gives the slots of the first n entries back to the kernel.
func (r *Consumer[T]) Release(n uint32) {
	r.consumed += n
	// Ordering: release; pairs with the kernel's load of the consumer index.
	// Entries have been read by At before the index freeing their slots is seen.
	atomic.StoreUint32(r.shared.Consumer, r.consumed)
}

// Len is how many entries the kernel has put there that are not released yet.
func (r *Consumer[T]) Len() uint32 { return r.shared.filled(uint32(len(r.entries))) }

// Entries is the size of the ring.
func (r *Consumer[T]) Entries() uint32 { return uint32(len(r.entries)) }

// filled is the number of entries between the two shared indices. The two loads
// are not one, so a reader that is neither side can see a consumer that has
// passed the producer it read before: never more than all, never less than none.
func (x Indices) filled(entries uint32) uint32 {
	consumer := atomic.LoadUint32(x.Consumer)
	return min(atomic.LoadUint32(x.Producer)-consumer, entries)
}
