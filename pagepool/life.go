// SPDX-License-Identifier: Apache-2.0

package pagepool

import (
	"context"
	"fmt"
	"time"
)

const (
	// destroyWaitMin is the first wait of Destroy for pages in flight: about the time that a completion takes. Smaller:
	// more wake-ups. Larger: a slower stop.
	destroyWaitMin = time.Millisecond

	// destroyWaitMax bounds the waits, which double. Smaller: wake-ups for nothing while a link is down. Larger: a pool
	// that is noticed late.
	destroyWaitMax = 64 * time.Millisecond
)

// Resize gives the ring another number of slots, 1 to MaxRingSize. Pages that no longer fit go to the provider.
func (p *PagePool) Resize(ringSize int) error {
	if ringSize < 1 || ringSize > MaxRingSize {
		return fmt.Errorf("page pool %s: ring size %d: must be 1 to %d", p.name, ringSize, MaxRingSize)
	}
	pages, err := p.ring.Resize(ringSize)
	if err != nil {
		return fmt.Errorf("page pool %s: %w", p.name, err)
	}
	p.releaseFromRing(pages)
	return nil
}

// Flush gives the pages in the cache and in the ring back to the provider. What others put meanwhile may stay.
//
// Owner: the pool's owner only.
func (p *PagePool) Flush() {
	p.releaseCache()
	var pages [RefillSize]Page
	for left := p.ring.Size(); left > 0; {
		n := p.ring.ConsumeBatch(pages[:])
		if n == 0 {
			return
		}
		p.releaseFromRing(pages[:n])
		left -= n
	}
}

// Retire ends recycling: the cache and the ring go back to the provider and take no more pages. From then on there is
// nothing to alloc, and a put of any kind returns its page to the provider. Calling it again does nothing.
//
// Owner: the pool's owner only, or anyone once the owner has stopped.
func (p *PagePool) Retire() {
	// Ordering: none needed beyond one caller winning; the owner is the caller, or has stopped.
	if !p.retired.CompareAndSwap(false, true) {
		return
	}
	p.directLimit = 0
	p.releaseCache()
	p.releaseFromRing(p.ring.Cleanup())
}

// Destroy retires the pool and waits until each page that is still out has come home, or until ctx is done. The error
// names the pool and the number of pages missing. Calling it again goes on waiting; no page is released twice.
//
// Owner: the pool's owner, or anyone once the owner has stopped or called Retire.
func (p *PagePool) Destroy(ctx context.Context) error {
	p.Retire()
	timer := time.NewTimer(destroyWaitMin)
	defer timer.Stop()
	for wait := destroyWaitMin; ; wait = min(2*wait, destroyWaitMax) {
		inflight := p.Inflight()
		if inflight == 0 {
			return nil
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return fmt.Errorf("page pool %s: %d pages still in flight: %w", p.name, inflight, context.Cause(ctx))
		}
	}
}

// releaseCache empties the cache into the provider.
func (p *PagePool) releaseCache() {
	n := p.cacheLen
	p.cacheLen = 0
	p.counts.cacheFilled -= uint64(n)
	p.releasePages(p.cache[:n])
}

// releaseFromRing gives pages that were taken out of the ring back to the provider.
func (p *PagePool) releaseFromRing(pages []Page) {
	// Ordering: none needed; a count.
	p.ringTaken.Add(uint64(len(pages)))
	p.releasePages(pages)
}
