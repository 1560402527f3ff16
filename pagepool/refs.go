// SPDX-License-Identifier: Apache-2.0

package pagepool

import (
	"fmt"
	"math/bits"
	"sync/atomic"
)

// Refs counts the holders of pages that may have more than one: a frame that is flooded to several ports, or looked at
// while it is sent. All pools over one memory share one Refs.
//
// Invariant: a page that lies in a pool or with the provider has count 1, so handing it out needs no store.
type Refs struct {
	first  Page
	shift  uint
	counts []atomic.Int32
}

// NewRefs counts the holders of n pages, the first of which is first, stride apart. Page numbers may wrap.
func NewRefs(first Page, stride uint64, n int) (*Refs, error) {
	if bits.OnesCount64(stride) != 1 {
		return nil, fmt.Errorf("reference counts: stride %d: must be a power of two", stride)
	}
	if n < 1 {
		return nil, fmt.Errorf("reference counts: %d pages: must be at least 1", n)
	}
	r := &Refs{first: first, shift: uint(bits.TrailingZeros64(stride)), counts: make([]atomic.Int32, n)}
	for i := range r.counts {
		// Ordering: none needed; nobody else has the Refs yet.
		r.counts[i].Store(1)
	}
	return r, nil
}

// Get adds a holder to page p. The caller is a holder itself. Pages outside the Refs always have one holder: for them Get
// does nothing.
func (r *Refs) Get(p Page) {
	if c := r.count(p); c != nil {
		// Ordering: none needed; the caller's own reference keeps the count above 0.
		c.Add(1)
	}
}

// Holders returns the number of holders of page p, for tests and status.
func (r *Refs) Holders(p Page) int {
	if c := r.count(p); c != nil {
		return int(c.Load())
	}
	return 1
}

// put takes a holder away and reports whether it was the last, in which case the page is the caller's to recycle and
// counts 1 again. A sole holder costs a load: nobody else can get the page meanwhile.
func (r *Refs) put(p Page) bool {
	c := r.count(p)
	return c == nil || c.Load() == 1 || dropHolder(c)
}

// dropHolder is put for a page that had several holders a moment ago.
func dropHolder(c *atomic.Int32) bool {
	// Ordering: acquire and release; pairs with itself. The last holder sees what the others did to the page.
	if c.Add(-1) != 0 {
		return false
	}
	// Ordering: none needed; the page has no holder but the caller, and the ring or the cache publishes it.
	c.Store(1)
	return true
}

// count returns the counter of page p, nil when p lies outside.
func (r *Refs) count(p Page) *atomic.Int32 {
	slot := uint64(p-r.first) >> r.shift
	if slot >= uint64(len(r.counts)) {
		return nil
	}
	return &r.counts[slot]
}
