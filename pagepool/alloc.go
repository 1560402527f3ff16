// SPDX-License-Identifier: Apache-2.0

package pagepool

// Alloc hands out a page: from the cache, else from the ring, else from the provider. 0: there is none.
//
// Owner: the pool's owner only.
func (p *PagePool) Alloc() Page {
	if p.cacheLen == 0 {
		return p.allocSlowly()
	}
	p.cacheLen--
	return p.cache[p.cacheLen%CacheSize]
}

// AllocBulk fills dst with the pages that as many calls of Alloc would give, up to the first that gives none, and returns
// how many there are.
//
// Owner: the pool's owner only.
func (p *PagePool) AllocBulk(dst []Page) int {
	n := p.popCache(dst)
	for n < len(dst) {
		page := p.allocSlowly()
		if page == 0 {
			break
		}
		dst[n] = page
		n++
		n += p.popCache(dst[n:])
	}
	return n
}

// popCache takes pages off the top of the cache into dst and returns how many.
func (p *PagePool) popCache(dst []Page) int {
	n := min(int(p.cacheLen), len(dst))
	p.cacheLen -= uint(n)
	taken := p.cache[p.cacheLen:]
	dst = dst[:n]
	for i := range dst {
		dst[i] = taken[n-1-i]
	}
	return n
}

// allocSlowly is Alloc with an empty cache.
func (p *PagePool) allocSlowly() Page {
	if p.retired.Load() {
		return 0
	}
	if p.refillFromRing() {
		p.counts.allocRefill++
		return p.popOne()
	}
	p.counts.allocEmpty++
	if p.refillFromProvider() {
		p.counts.allocSlow++
		return p.popOne()
	}
	return 0
}

// refillFromRing moves pages that others have put from the ring to the empty cache.
func (p *PagePool) refillFromRing() bool {
	n := p.ring.ConsumeBatch(p.cache[:RefillSize])
	if n == 0 {
		return false
	}
	p.fillCache(n)
	// Ordering: none needed; a count, exact for the owner.
	p.ringTaken.Add(uint64(n))
	return true
}

// refillFromProvider moves pages from the provider to the empty cache.
func (p *PagePool) refillFromProvider() bool {
	n := p.provider.AllocPages(p.cache[:RefillSize])
	if n <= 0 {
		return false
	}
	n = min(n, RefillSize)
	p.fillCache(n)
	// Ordering: release; pairs with the load in Inflight. Held before any of them can be released.
	p.hold.Add(uint64(n))
	return true
}

// fillCache says that n pages lie in the cache, which was empty.
func (p *PagePool) fillCache(n int) {
	p.cacheLen = uint(n)
	p.counts.cacheFilled += uint64(n)
}

// popOne takes the top page of a cache that is not empty.
func (p *PagePool) popOne() Page {
	p.cacheLen--
	return p.cache[p.cacheLen%CacheSize]
}
