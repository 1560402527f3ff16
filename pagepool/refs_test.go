// SPDX-License-Identifier: Apache-2.0

package pagepool_test

import (
	"testing"

	"github.com/xskfwd/xskfwd/pagepool"
)

func TestRefsCountHoldersAcross32Bits(t *testing.T) {
	const stride, n = 2048, 8
	first := pagepool.Page(1<<32 - 4*stride + 1)
	refs, err := pagepool.NewRefs(first, stride, n)
	if err != nil {
		t.Fatal(err)
	}
	for i := range pagepool.Page(n) {
		for range i {
			refs.Get(first + i*stride)
		}
	}
	for i := range n {
		if got := refs.Holders(first + pagepool.Page(i)*stride); got != i+1 {
			t.Errorf("page %d has %d holders, want %d", i, got, i+1)
		}
	}
	for _, p := range []pagepool.Page{0, first - 1, first + n*stride, 1<<64 - 1} {
		refs.Get(p)
		if got := refs.Holders(p); got != 1 {
			t.Errorf("page %#x, which is outside, has %d holders", uint64(p), got)
		}
	}
}

func TestRefsRefuseBadParameters(t *testing.T) {
	for _, c := range []struct {
		stride uint64
		n      int
	}{{0, 1}, {3, 1}, {2049, 1}, {2048, 0}, {2048, -1}} {
		if _, err := pagepool.NewRefs(1, c.stride, c.n); err == nil {
			t.Errorf("stride %d and %d pages were taken", c.stride, c.n)
		}
	}
}

func TestPagePoolSharedPageIsRecycledByItsLastHolder(t *testing.T) {
	refs, err := pagepool.NewRefs(0x1001, 0x1000, 64)
	if err != nil {
		t.Fatal(err)
	}
	pool, _ := newPool(t, 64, func(p *pagepool.Params) { p.Refs = refs })
	page := pool.Alloc()
	refs.Get(page)
	refs.Get(page)
	for _, want := range []pagepool.PutCount{{Shared: 1}, {Shared: 1}, {Cached: 1}} {
		if got := pool.Put(page, true); got != want {
			t.Errorf("the page went to %+v, want %+v", got, want)
		}
	}
	if got := refs.Holders(page); got != 1 {
		t.Errorf("a page in the cache has %d holders, want 1", got)
	}
	if got := pool.Alloc(); got != page {
		t.Errorf("alloc gave %#x, want %#x", uint64(got), uint64(page))
	}
	refs.Get(page)
	if got := pool.PutBulk([]pagepool.Page{page, 0, page}, false); got != (pagepool.PutCount{Shared: 1, Ring: 1}) {
		t.Errorf("two puts of one page went to %+v", got)
	}
	checkStats(t, pool, pagepool.Stats{AllocFast: 1, AllocSlow: 1, AllocEmpty: 1, CacheFrames: 63, HoldCnt: 64,
		RecycleCached: 1, RecycleReleasedRefcnt: 3, RecycleRing: 1, RingFrames: 1})
}
