// SPDX-License-Identifier: Apache-2.0

package pagepool

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

const (
	// CacheSize is how many pages the owner's cache holds: the kernel's PP_ALLOC_CACHE_SIZE, two polls of 64 packets.
	// Smaller: pages of one poll that come home before the next alloc spill into the ring. Larger: pages lie idle.
	CacheSize = 128

	// RefillSize is how many pages a refill takes from the ring, and the slow path from the provider: the kernel's
	// PP_ALLOC_CACHE_REFILL, one poll of 64 packets. Smaller: more locks per page. Larger: less room left in the cache for
	// the pages that come home in the same poll.
	RefillSize = 64

	// DefaultRingSize is the number of ring slots when none is asked for: the kernel's. Smaller: pages of a burst go to the
	// provider instead. Larger: more pages out of reach of the other pools.
	DefaultRingSize = 1024

	// MaxRingSize is the kernel's limit as well: above it one pool can hold more pages than a UMEM usually has.
	MaxRingSize = 32768
)

// Relations between the constants, checked by the compiler: each line fails to build when it is false.
const (
	_ = uint(CacheSize - 2*RefillSize)      // a refill leaves half the cache to pages that come home
	_ = -uint(CacheSize & (CacheSize - 1))  // the cache index is masked
	_ = uint(RefillSize - ringBatch)        // a whole refill always frees slots of the ring
	_ = uint(DefaultRingSize - CacheSize)   // the ring takes what a full cache turns away
	_ = uint(MaxRingSize - DefaultRingSize) // the default is allowed
	_ = uint(maxRingSlots - MaxRingSize)    // a PtrRing can be as large as a pool's ring
	_ = -uint(DefaultRingSize % ringBatch)  // no short batch at the end of the default ring
	_ = uint(ringBatch*8 - cacheLine)       // a batch of slots fills the distance kept between writers
	_ = uint(releaseBatch - CacheSize/2)    // a drained cache goes to the provider in two calls at most
)

// Params says what a pool is made of.
type Params struct {
	// Name is the pool's name in errors and metrics.
	Name string
	// ID is the memory's number, by which a page finds its way back. 0: the pool is not looked up by number.
	ID MemID
	// Owner is the number of the goroutine (the worker) whose puts are direct.
	Owner int
	// RingSize is the number of ring slots, any number from 1 to MaxRingSize. 0: DefaultRingSize.
	RingSize int
	// Provider is the memory behind the pool.
	Provider Provider
	// Refs counts holders. Nil: each page has exactly one holder.
	Refs *Refs
}

// PagePool recycles the pages of one owner.
//
// Invariant: at any time each page that the provider has given is in the cache, in the ring or handed out, and the number
// of them is [PagePool.Inflight].
type PagePool struct {
	// Set by New and never changed.
	name     string
	id       MemID
	owner    int
	provider Provider
	refs     *Refs
	_        linePad

	// Owner: everything up to the next pad is touched by the owner only.

	// cacheLen is the number of pages in the cache, which is used as a stack.
	cacheLen uint
	// directLimit is up to how many pages Put may add to the cache without further questions: CacheSize, or 0 when
	// holders have to be counted or the pool has retired.
	directLimit uint
	counts      ownerCounts
	cache       [CacheSize]Page
	_           linePad

	// Written by the owner once a poll or once a batch, read by anyone.

	// published is what the owner counted until its last Publish.
	published publishedCounts
	// hold is the number of pages ever taken from the provider. Written by the owner only.
	hold atomic.Uint64
	// ringTaken is the number of pages ever taken out of the ring, by refills, Flush, Resize and Retire.
	ringTaken atomic.Uint64
	// retired is set by the first Retire.
	retired atomic.Bool
	_       linePad

	// Written by whoever puts pages, once a bulk.

	// release is the number of pages ever given back to the provider.
	release atomic.Uint64
	// releasedRefcnt is the number of puts that left other holders.
	releasedRefcnt atomic.Uint64
	// releaseLock guards releaseBuf, the slice that FreePages gets: a caller's own slice would have to live on the heap,
	// for the compiler cannot see where an interface takes it.
	releaseLock sync.Mutex
	releaseBuf  [releaseBatch]Page
	_           linePad

	ring PtrRing
}

// New returns a pool without pages. The first Alloc takes some from the provider.
func New(params Params) (*PagePool, error) {
	if params.Name == "" {
		return nil, errors.New("page pool: no name given")
	}
	if params.Provider == nil {
		return nil, fmt.Errorf("page pool %s: no provider given", params.Name)
	}
	p := &PagePool{
		name:     params.Name,
		id:       params.ID,
		owner:    params.Owner,
		provider: params.Provider,
		refs:     params.Refs,
	}
	if p.refs == nil {
		p.directLimit = CacheSize
	}
	size := params.RingSize
	if size == 0 {
		size = DefaultRingSize
	}
	if err := p.Resize(size); err != nil {
		return nil, err
	}
	return p, nil
}

// Name returns the pool's name.
func (p *PagePool) Name() string { return p.name }

// ID returns the number of the pool's memory.
func (p *PagePool) ID() MemID { return p.id }

// Owner returns the number of the pool's owner.
func (p *PagePool) Owner() int { return p.owner }

// Inflight returns how many of the provider's pages the pool has or has handed out: hold minus release, as the signed
// distance of two 32-bit counters that wrap.
func (p *PagePool) Inflight() int32 {
	// Read first: a page released in between was held before, so the difference is never negative by that.
	release := uint32(p.release.Load())
	return int32(uint32(p.hold.Load()) - release)
}
