// SPDX-License-Identifier: Apache-2.0

package pagepool_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xskfwd/xskfwd/pagepool"
)

// publishedStats returns the statistics with all that the owner has counted.
func publishedStats(pool *pagepool.PagePool) pagepool.Stats {
	pool.Publish()
	return pool.Stats()
}

// checkStats compares the counters of the pool with want, in which the sizes are filled in from the pool.
func checkStats(t *testing.T, pool *pagepool.PagePool, want pagepool.Stats) {
	t.Helper()
	got := publishedStats(pool)
	want.RingSize = got.RingSize
	if got != want {
		t.Errorf("statistics are\n %+v, want\n %+v", got, want)
	}
}

func TestPagePoolAllocTakesCacheThenRingThenProvider(t *testing.T) {
	pool, a := newPool(t, 1000, nil)
	slow := pool.Alloc()
	if slow == 0 || a.calls != 1 || a.freeLen() != 1000-64 {
		t.Fatalf("the first alloc gave %d after %d provider calls and left %d pages there", slow, a.calls, a.freeLen())
	}
	checkStats(t, pool, pagepool.Stats{AllocSlow: 1, AllocEmpty: 1, CacheFrames: 63, HoldCnt: 64})

	held := append(allocAll(t, pool, 63), slow)
	checkStats(t, pool, pagepool.Stats{AllocFast: 63, AllocSlow: 1, AllocEmpty: 1, HoldCnt: 64})

	oldest := held[0]
	if c := pool.PutBulk(held, false); c != (pagepool.PutCount{Ring: 64}) {
		t.Errorf("foreign pages went to %+v", c)
	}
	if got := pool.Alloc(); got == oldest || got == 0 {
		t.Errorf("a refill gave page %d; the cache is LIFO", got)
	}
	checkStats(t, pool, pagepool.Stats{AllocFast: 63, AllocSlow: 1, AllocEmpty: 1, AllocRefill: 1, CacheFrames: 63,
		RecycleRing: 64, RingTaken: 64, HoldCnt: 64})
	if a.calls != 1 {
		t.Errorf("the provider was called %d times, want once", a.calls)
	}
}

func TestPagePoolAllocGivesNothingWhenThereIsNothing(t *testing.T) {
	pool, a := newPool(t, 70, nil)
	allocAll(t, pool, 70)
	if p := pool.Alloc(); p != 0 {
		t.Errorf("got page %d from nowhere", p)
	}
	if n := pool.AllocBulk(make([]pagepool.Page, 3)); n != 0 {
		t.Errorf("got %d pages from nowhere", n)
	}
	checkStats(t, pool, pagepool.Stats{AllocFast: 68, AllocSlow: 2, AllocEmpty: 4, HoldCnt: 70})
	if a.calls != 4 {
		t.Errorf("the provider was called %d times, want 4", a.calls)
	}
}

func TestPagePoolAllocBulkCountsLikeSingleAllocs(t *testing.T) {
	single, _ := newPool(t, 500, nil)
	bulk, _ := newPool(t, 500, nil)
	for _, n := range []int{1, 0, 5, 64, 65, 128, 200, 30, 50} {
		want := make([]pagepool.Page, 0, n)
		for range n {
			if p := single.Alloc(); p != 0 {
				want = append(want, p)
			}
		}
		got := make([]pagepool.Page, n)
		got = got[:bulk.AllocBulk(got)]
		if !slices.Equal(got, want) {
			t.Fatalf("%d pages: got %v, want %v", n, got, want)
		}
		for i, p := range want {
			direct := i%3 > 0
			single.Put(p, direct)
			bulk.Put(p, direct)
		}
		if got, want := publishedStats(bulk), publishedStats(single); got != want {
			t.Fatalf("%d pages: statistics are\n %+v, want\n %+v", n, got, want)
		}
	}
}

func TestPagePoolDirectPutFillsCacheThenRing(t *testing.T) {
	pool, _ := newPool(t, 1000, nil)
	pages := allocAll(t, pool, 192)
	for i, p := range pages {
		want := pagepool.PutCount{Cached: 1}
		if i >= 128 {
			want = pagepool.PutCount{Ring: 1}
		}
		if got := pool.Put(p, true); got != want {
			t.Fatalf("page %d of 192 went to %+v, want %+v", i, got, want)
		}
	}
	checkStats(t, pool, pagepool.Stats{AllocFast: 189, AllocSlow: 3, AllocEmpty: 3, CacheFrames: 128, HoldCnt: 192,
		RecycleCached: 128, RecycleCacheFull: 64, RecycleRing: 64, RingFrames: 64})
	if got := pool.Alloc(); got != pages[127] {
		t.Errorf("alloc gave page %#x, want the one put into the cache last, %#x", got, pages[127])
	}
}

func TestPagePoolPutFromForeignOwnerUsesRing(t *testing.T) {
	pool, _ := newPool(t, 1000, nil)
	for _, p := range allocAll(t, pool, 64) {
		if got := pool.Put(p, false); got != (pagepool.PutCount{Ring: 1}) {
			t.Fatalf("a foreign page went to %+v", got)
		}
	}
	checkStats(t, pool, pagepool.Stats{AllocFast: 63, AllocSlow: 1, AllocEmpty: 1, HoldCnt: 64, RecycleRing: 64, RingFrames: 64})
}

func TestPagePoolPutReleasesToProviderWhenRingIsFull(t *testing.T) {
	pool, a := newPool(t, 256, func(p *pagepool.Params) { p.RingSize = 3 })
	pages := allocAll(t, pool, 64)
	if c := pool.PutBulk(pages[:10], false); c != (pagepool.PutCount{Ring: 3, Released: 7}) {
		t.Errorf("10 pages for a ring of 3 went to %+v", c)
	}
	if c := pool.Put(pages[10], false); c != (pagepool.PutCount{Released: 1}) {
		t.Errorf("a page for a full ring went to %+v", c)
	}
	if a.freeLen() != 256-64+8 {
		t.Errorf("the provider has %d pages, want %d", a.freeLen(), 256-64+8)
	}
	checkStats(t, pool, pagepool.Stats{AllocFast: 63, AllocSlow: 1, AllocEmpty: 1, HoldCnt: 64, ReleaseCnt: 8,
		RecycleRing: 3, RecycleRingFull: 8, RingFrames: 3, ProduceFull: 2})
	if pool.Inflight() != 56 {
		t.Errorf("%d pages are in flight, want 56", pool.Inflight())
	}
}

func TestPagePoolPutBulkGoesWhereSinglePutsGo(t *testing.T) {
	for _, direct := range []bool{true, false} {
		single, _ := newPool(t, 400, func(p *pagepool.Params) { p.RingSize = 100 })
		bulk, _ := newPool(t, 400, func(p *pagepool.Params) { p.RingSize = 100 })
		pages, same := allocAll(t, single, 320), allocAll(t, bulk, 320)
		for len(pages) > 0 {
			n := min(len(pages), 50)
			var want pagepool.PutCount
			for _, p := range pages[:n] {
				c := single.Put(p, direct)
				want.Cached += c.Cached
				want.Ring += c.Ring
				want.Released += c.Released
			}
			if got := bulk.PutBulk(same[:n], direct); got != want {
				t.Errorf("direct %v: a bulk of %d went to %+v, want %+v", direct, n, got, want)
			}
			pages, same = pages[n:], same[n:]
		}
		got, want := publishedStats(bulk), publishedStats(single)
		want.ProduceFull = got.ProduceFull // a bulk is one put
		if got != want {
			t.Errorf("direct %v: statistics are\n %+v, want\n %+v", direct, got, want)
		}
	}
}

func TestPagePoolIgnoresTheZeroPage(t *testing.T) {
	pool, _ := newPool(t, 64, nil)
	pages := allocAll(t, pool, 4)
	if c := pool.Put(0, true); c != (pagepool.PutCount{}) {
		t.Errorf("the zero page went to %+v", c)
	}
	if c := pool.Put(0, false); c != (pagepool.PutCount{}) {
		t.Errorf("the zero page went to %+v", c)
	}
	if c := pool.PutBulk([]pagepool.Page{0, pages[0], 0, 0, pages[1], pages[2], 0}, false); c != (pagepool.PutCount{Ring: 3}) {
		t.Errorf("three pages among zero pages went to %+v", c)
	}
	if c := pool.PutBulk([]pagepool.Page{0, pages[3], 0}, true); c != (pagepool.PutCount{Cached: 1}) {
		t.Errorf("a page among zero pages went to %+v", c)
	}
	got := allocAll(t, pool, 64)
	slices.Sort(got)
	if got[0] == 0 || len(slices.Compact(got)) != 64 {
		t.Error("the pages that came back are not those that were put")
	}
}

func TestPagePoolResizeReleasesWhatNoLongerFits(t *testing.T) {
	pool, a := newPool(t, 256, nil)
	pages := allocAll(t, pool, 64)
	pool.PutBulk(slices.Clone(pages), false)
	if err := pool.Resize(10); err != nil {
		t.Fatal(err)
	}
	if a.freeLen() != 256-10 || pool.Inflight() != 10 {
		t.Errorf("the provider has %d pages and %d are in flight, want 246 and 10", a.freeLen(), pool.Inflight())
	}
	checkStats(t, pool, pagepool.Stats{AllocFast: 63, AllocSlow: 1, AllocEmpty: 1, HoldCnt: 64, ReleaseCnt: 54,
		RecycleRing: 64, RingFrames: 10, RingTaken: 54})
	got := allocAll(t, pool, 10)
	slices.Reverse(got) // the refill makes a stack of the ring
	if !slices.Equal(got, pages[:10]) {
		t.Errorf("the ring kept %v, want the oldest, %v", got, pages[:10])
	}
	for _, size := range []int{0, -1, 32769} {
		if err := pool.Resize(size); err == nil || !strings.Contains(err.Error(), "page pool pool: ring size") {
			t.Errorf("ring size %d: error %v", size, err)
		}
	}
}

func TestPagePoolFlushGivesCacheAndRingBack(t *testing.T) {
	pool, a := newPool(t, 500, nil)
	pages := allocAll(t, pool, 448)
	pool.PutBulk(pages[:128], true)
	pool.PutBulk(pages[128:446], false)
	pool.Flush()
	if a.freeLen() != 498 || pool.Inflight() != 2 {
		t.Errorf("the provider has %d pages and %d are in flight, want 498 and 2", a.freeLen(), pool.Inflight())
	}
	checkStats(t, pool, pagepool.Stats{AllocFast: 441, AllocSlow: 7, AllocEmpty: 7, HoldCnt: 448, ReleaseCnt: 446,
		RecycleCached: 128, RecycleRing: 318, RingTaken: 318})
	allocAll(t, pool, 10)
	if got := publishedStats(pool); got.AllocFast != 450 || got.AllocSlow != 8 {
		t.Errorf("after a flush, allocs are counted as %+v", got)
	}
}

func TestPagePoolRetireSendsEveryPutToTheProvider(t *testing.T) {
	pool, a := newPool(t, 256, nil)
	pages := allocAll(t, pool, 100)
	pool.PutBulk(slices.Clone(pages[:5]), true)
	pool.PutBulk(slices.Clone(pages[5:10]), false)
	pool.Retire()
	pool.Retire()
	if pool.Inflight() != 90 || a.freeLen() != 166 {
		t.Fatalf("%d pages are in flight and the provider has %d, want 90 and 166", pool.Inflight(), a.freeLen())
	}
	if pool.Alloc() != 0 || pool.AllocBulk(make([]pagepool.Page, 2)) != 0 {
		t.Error("a retired pool gave a page")
	}
	if c := pool.Put(pages[10], true); c != (pagepool.PutCount{Released: 1}) {
		t.Errorf("a direct put went to %+v", c)
	}
	if c := pool.Put(pages[11], false); c != (pagepool.PutCount{Released: 1}) {
		t.Errorf("a foreign put went to %+v", c)
	}
	if c := pool.PutBulk(pages[12:], true); c != (pagepool.PutCount{Released: 88}) {
		t.Errorf("a direct bulk went to %+v", c)
	}
	if pool.Inflight() != 0 || a.freeLen() != 256 {
		t.Errorf("%d pages are in flight and the provider has %d, want 0 and 256", pool.Inflight(), a.freeLen())
	}
	if err := pool.Resize(10); err == nil {
		t.Error("a retired pool was resized")
	}
	s := publishedStats(pool)
	if put := s.RecycleCached + s.RecycleRing + s.RecycleRingFull + s.RecycleReleasedRefcnt; put != 100 || s.RecycleCacheFull != 0 {
		t.Errorf("100 puts are counted as %+v", s)
	}
}

func TestPagePoolDestroyWaitsForPagesInFlight(t *testing.T) {
	pool, a := newPool(t, 256, nil)
	pages := allocAll(t, pool, 65)
	done := make(chan error)
	go func() { done <- pool.Destroy(context.Background()) }()
	for _, p := range pages {
		select {
		case err := <-done:
			t.Fatalf("Destroy returned %v with a page out", err)
		default:
		}
		pool.Put(p, false)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if a.freeLen() != 256 || pool.Inflight() != 0 {
		t.Errorf("the provider has %d pages and %d are in flight, want 256 and 0", a.freeLen(), pool.Inflight())
	}
}

func TestPagePoolDestroyIsBoundedAndNamesPoolAndCount(t *testing.T) {
	pool, a := newPool(t, 256, func(p *pagepool.Params) { p.Name = "eth0-3" })
	pages := allocAll(t, pool, 3)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	err := pool.Destroy(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "page pool eth0-3: 3 pages still in flight") {
		t.Errorf("error is %v", err)
	}
	pool.PutBulk(pages, false)
	for range 2 {
		if err := pool.Destroy(ctx); err != nil {
			t.Errorf("destroying again with nothing in flight: %v", err)
		}
	}
	if a.freeLen() != 256 {
		t.Errorf("the provider has %d pages, want 256", a.freeLen())
	}
}

func TestPagePoolNewRefusesBadParameters(t *testing.T) {
	a := newArena(t, 1, 1, 1)
	for want, params := range map[string]pagepool.Params{
		"page pool: no name given":                         {Provider: a},
		"page pool p: no provider given":                   {Name: "p"},
		"page pool p: ring size -1: must be 1 to 32768":    {Name: "p", Provider: a, RingSize: -1},
		"page pool p: ring size 32769: must be 1 to 32768": {Name: "p", Provider: a, RingSize: 32769},
	} {
		if _, err := pagepool.New(params); err == nil || err.Error() != want {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
}

func TestPagePoolTellsWhatItWasMadeOf(t *testing.T) {
	pool, _ := newPool(t, 1, func(p *pagepool.Params) { p.Name, p.ID, p.Owner, p.RingSize = "eth1-0", 7, 3, 5 })
	if pool.Name() != "eth1-0" || pool.ID() != 7 || pool.Owner() != 3 || pool.Stats().RingSize != 5 {
		t.Errorf("pool is %s, %d, %d, %d", pool.Name(), pool.ID(), pool.Owner(), pool.Stats().RingSize)
	}
	pool, _ = newPool(t, 1, nil)
	if pool.Stats().RingSize != pagepool.DefaultRingSize {
		t.Errorf("default ring size is %d", pool.Stats().RingSize)
	}
}

// A provider may have less than it is asked for.
func TestPagePoolTakesWhatTheProviderHas(t *testing.T) {
	pool, a := newPool(t, 10, nil)
	a.limit = 3
	if got := allocAll(t, pool, 10); len(got) != 10 || a.calls != 4 {
		t.Errorf("got %d pages in %d calls, want 10 in 4", len(got), a.calls)
	}
	checkStats(t, pool, pagepool.Stats{AllocFast: 6, AllocSlow: 4, AllocEmpty: 4, HoldCnt: 10})
}

func TestPagePoolStatsShowOnlyWhatIsPublished(t *testing.T) {
	pool, _ := newPool(t, 100, nil)
	pool.Put(pool.Alloc(), true)
	if s := pool.Stats(); s.AllocSlow != 0 || s.RecycleCached != 0 || s.CacheFrames != 0 || s.HoldCnt != 64 {
		t.Errorf("before Publish: %+v", s)
	}
	if c := pool.OwnerCounts(); c != (pagepool.OwnerCounts{Cache: 64, Hold: 64}) {
		t.Errorf("the owner's counts are %+v", c)
	}
	checkStats(t, pool, pagepool.Stats{AllocSlow: 1, AllocEmpty: 1, RecycleCached: 1, CacheFrames: 64, HoldCnt: 64})
}
