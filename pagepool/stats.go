// SPDX-License-Identifier: Apache-2.0

package pagepool

import "sync/atomic"

// Stats is what a pool did, under the kernel's names, and what it holds. Counters never go back.
//
// Invariant: pages handed out = AllocFast + AllocRefill + AllocSlow.
// Invariant: pages put = RecycleCached + RecycleRing + RecycleRingFull + RecycleReleasedRefcnt.
// Invariant: RingFrames = RecycleRing - RingTaken, and HoldCnt - ReleaseCnt = Inflight.
//
// They are exact for what the owner has published; see [PagePool.Publish].
type Stats struct {
	// AllocFast counts pages from the cache. The other pages of a refill or a slow alloc are among them.
	AllocFast uint64
	// AllocSlow counts pages for which the provider had to be asked.
	AllocSlow uint64
	// AllocEmpty counts how often the ring was found empty, which leads to the provider.
	AllocEmpty uint64
	// AllocRefill counts pages for which the cache was refilled from the ring.
	AllocRefill uint64
	// AllocWaive is always 0: no page is on the wrong NUMA node.
	AllocWaive uint64

	// RecycleCached counts pages put into the cache.
	RecycleCached uint64
	// RecycleCacheFull counts direct puts that found the cache full and went on to the ring.
	RecycleCacheFull uint64
	// RecycleRing counts pages put into the ring.
	RecycleRing uint64
	// RecycleRingFull counts pages released to the provider because the ring had no room for them.
	RecycleRingFull uint64
	// RecycleReleasedRefcnt counts puts that left other holders.
	RecycleReleasedRefcnt uint64

	// CacheFrames is the number of pages in the cache.
	CacheFrames int
	// RingFrames is the number of pages in the ring.
	RingFrames int
	// RingSize is the number of slots of the ring; 0 when the pool has retired.
	RingSize int
	// HoldCnt is the number of pages taken from the provider. It wraps.
	HoldCnt uint32
	// ReleaseCnt is the number of pages given back to the provider. It wraps.
	ReleaseCnt uint32
	// RingTaken is the number of pages taken out of the ring.
	RingTaken uint64
	// ProduceFull is the number of puts that found the ring full, a bulk being one put.
	ProduceFull uint64
}

// OwnerCounts is what the owner needs for a census of its pages.
type OwnerCounts struct {
	// Cache is the number of pages in the cache.
	Cache int
	// Hold is the number of pages ever taken from the provider.
	Hold uint64
	// RingTaken is the number of pages ever taken out of the ring.
	RingTaken uint64
}

// ownerCounts are counted by the owner, plainly.
type ownerCounts struct {
	// cacheFilled is the number of pages that the cache got from the ring and the provider, less those flushed from it.
	cacheFilled      uint64
	allocSlow        uint64
	allocEmpty       uint64
	allocRefill      uint64
	recycleCached    uint64
	recycleCacheFull uint64
}

// publishedCounts are copies of the owner's counts that anyone may read.
type publishedCounts struct {
	allocFast        atomic.Uint64
	allocSlow        atomic.Uint64
	allocEmpty       atomic.Uint64
	allocRefill      atomic.Uint64
	recycleCached    atomic.Uint64
	recycleCacheFull atomic.Uint64
	cacheLen         atomic.Uint64
}

// Publish shows the owner's counts to Stats: once a poll, not once a page. A count that has not changed costs a load.
//
// Owner: the pool's owner only.
func (p *PagePool) Publish() {
	publish(&p.published.allocFast, p.allocFast())
	publish(&p.published.allocSlow, p.counts.allocSlow)
	publish(&p.published.allocEmpty, p.counts.allocEmpty)
	publish(&p.published.allocRefill, p.counts.allocRefill)
	publish(&p.published.recycleCached, p.counts.recycleCached)
	publish(&p.published.recycleCacheFull, p.counts.recycleCacheFull)
	publish(&p.published.cacheLen, uint64(p.cacheLen))
}

// allocFast returns the number of pages handed out from the cache. Alloc does not count them: what went into the cache and
// is neither in it nor handed out on the two other ways was handed out from it.
func (p *PagePool) allocFast() uint64 {
	c := &p.counts
	return c.cacheFilled + c.recycleCached - uint64(p.cacheLen) - c.allocRefill - c.allocSlow
}

func publish(to *atomic.Uint64, n uint64) {
	if to.Load() != n {
		// Ordering: none needed; each count stands for itself, and a reader may see a poll half published.
		to.Store(n)
	}
}

// Stats returns what the pool did as far as the owner has published it. It stops the ring for a moment.
func (p *PagePool) Stats() Stats {
	counts := p.ring.Counts()
	return Stats{
		AllocFast:             p.published.allocFast.Load(),
		AllocSlow:             p.published.allocSlow.Load(),
		AllocEmpty:            p.published.allocEmpty.Load(),
		AllocRefill:           p.published.allocRefill.Load(),
		RecycleCached:         p.published.recycleCached.Load(),
		RecycleCacheFull:      p.published.recycleCacheFull.Load(),
		RecycleRing:           counts.Produced,
		RecycleRingFull:       counts.Refused,
		RecycleReleasedRefcnt: p.releasedRefcnt.Load(),
		CacheFrames:           int(p.published.cacheLen.Load()),
		RingFrames:            p.ring.Len(),
		RingSize:              p.ring.Size(),
		HoldCnt:               uint32(p.hold.Load()),
		ReleaseCnt:            uint32(p.release.Load()),
		RingTaken:             p.ringTaken.Load(),
		ProduceFull:           counts.ProduceFull,
	}
}

// OwnerCounts returns the owner's own counts as they are now.
//
// Owner: the pool's owner only.
func (p *PagePool) OwnerCounts() OwnerCounts {
	return OwnerCounts{Cache: int(p.cacheLen), Hold: p.hold.Load(), RingTaken: p.ringTaken.Load()}
}
