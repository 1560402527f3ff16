// SPDX-License-Identifier: Apache-2.0

package pagepool

// releaseBatch is how many pages FreePages gets at most: a refill's worth. Smaller: more calls when a cache or a ring is
// emptied. Larger: a longer stay under the release lock.
const releaseBatch = RefillSize

// PutCount says where the pages of one put went. Every page is in exactly one of the four.
type PutCount struct {
	// Cached pages are in the owner's cache.
	Cached int
	// Ring pages are in the ring.
	Ring int
	// Released pages went back to the provider, because the ring had no room.
	Released int
	// Shared pages have other holders, the last of whom puts them.
	Shared int
}

// Put gives page back. direct: the caller is the pool's owner inside its own poll, so the page may go to the cache. The
// zero Page is ignored.
func (p *PagePool) Put(page Page, direct bool) PutCount {
	if direct && page != 0 && p.cacheLen < p.directLimit {
		p.cache[p.cacheLen%CacheSize] = page
		p.cacheLen++
		p.counts.recycleCached++
		return PutCount{Cached: 1}
	}
	return p.putSlow(page, direct)
}

// putSlow is Put with all questions asked.
func (p *PagePool) putSlow(page Page, direct bool) PutCount {
	switch {
	case page == 0:
		return PutCount{}
	case p.refs != nil && !p.refs.put(page):
		// Ordering: none needed; a count.
		p.releasedRefcnt.Add(1)
		return PutCount{Shared: 1}
	case direct && p.cacheOne(page):
		return PutCount{Cached: 1}
	case p.ring.Produce(page):
		return PutCount{Ring: 1}
	}
	p.releaseOne(page)
	return PutCount{Released: 1}
}

// PutBulk gives pages back as as many calls of Put would, but takes the ring's producer lock once. It reorders and
// overwrites ps, and does not keep it.
func (p *PagePool) PutBulk(ps []Page, direct bool) PutCount {
	var c PutCount
	ps, c.Shared = p.recyclable(ps)
	if direct {
		c.Cached = p.cachePages(ps)
		ps = ps[c.Cached:]
	}
	if len(ps) == 0 {
		return c
	}
	c.Ring = p.ring.ProduceBulk(ps)
	if c.Ring < len(ps) {
		c.Released = len(ps) - c.Ring
		p.releasePages(ps[c.Ring:])
	}
	return c
}

// recyclable moves the pages that the caller was the last holder of to the front of ps, and returns them and the number of
// pages that have other holders.
func (p *PagePool) recyclable(ps []Page) (last []Page, shared int) {
	if p.refs == nil {
		return withoutZero(ps), 0
	}
	n := 0
	for _, page := range ps {
		switch {
		case page == 0:
		case p.refs.put(page):
			ps[n] = page
			n++
		default:
			shared++
		}
	}
	if shared > 0 {
		// Ordering: none needed; a count.
		p.releasedRefcnt.Add(uint64(shared))
	}
	return ps[:n], shared
}

// withoutZero moves the pages of ps that are pages to the front and returns them. Normally they all are.
func withoutZero(ps []Page) []Page {
	n := 0
	for n < len(ps) && ps[n] != 0 {
		n++
	}
	if n == len(ps) {
		return ps
	}
	for _, page := range ps[n:] {
		if page != 0 {
			ps[n] = page
			n++
		}
	}
	return ps[:n]
}

// cacheOne puts page into the cache if there is room.
func (p *PagePool) cacheOne(page Page) bool {
	one := [1]Page{page}
	return p.cachePages(one[:]) == 1
}

// cachePages puts the first of ps into the cache, as many as there is room for, and returns how many.
//
// Owner: the pool's owner only.
func (p *PagePool) cachePages(ps []Page) int {
	if p.retired.Load() {
		return 0
	}
	n := copy(p.cache[p.cacheLen:], ps)
	p.cacheLen += uint(n)
	p.counts.recycleCached += uint64(n)
	p.counts.recycleCacheFull += uint64(len(ps) - n)
	return n
}

// releaseOne gives one page back to the provider.
func (p *PagePool) releaseOne(page Page) {
	one := [1]Page{page}
	p.releasePages(one[:])
}

// releasePages gives pages back to the provider, and counts them when it has them. It does not keep ps.
func (p *PagePool) releasePages(ps []Page) {
	if len(ps) == 0 {
		return
	}
	p.releaseLock.Lock()
	for rest := ps; len(rest) > 0; {
		n := copy(p.releaseBuf[:], rest)
		p.provider.FreePages(p.releaseBuf[:n])
		rest = rest[n:]
	}
	p.releaseLock.Unlock()
	// Ordering: release; pairs with the load in Inflight. Whoever sees 0 in flight finds all pages with the provider.
	p.release.Add(uint64(len(ps)))
}
