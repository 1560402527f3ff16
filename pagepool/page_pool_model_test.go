// SPDX-License-Identifier: Apache-2.0

package pagepool_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xskfwd/xskfwd/pagepool"
)

// poolTwin is what a PagePool does, on sets: where pages are does not say which page comes next, so the twin is told
// which page was handed out and knows whether that can be.
type poolTwin struct {
	cache   map[pagepool.Page]bool
	ring    *ringTwin
	holders map[pagepool.Page]int // of the pages handed out
	free    int                   // pages with the provider
	retired bool
	stats   pagepool.Stats
}

func newPoolTwin(pages, ringSize int) *poolTwin {
	return &poolTwin{
		cache:   make(map[pagepool.Page]bool),
		ring:    newRingTwin(ringSize),
		holders: make(map[pagepool.Page]int),
		free:    pages,
	}
}

// alloc says that page was handed out; a knows which pages the pool got for it.
func (t *poolTwin) alloc(tb testing.TB, page pagepool.Page, a *arena) {
	tb.Helper()
	switch {
	case t.retired:
		if page != 0 {
			tb.Fatalf("a retired pool handed out %#x", uint64(page))
		}
		return
	case len(t.cache) > 0:
		t.stats.AllocFast++
	case len(t.ring.queue) > 0:
		t.stats.AllocRefill++
		for _, p := range t.ring.consume(64) {
			t.cache[p] = true
			t.stats.RingTaken++
		}
	default:
		t.stats.AllocEmpty++
		if t.free == 0 {
			a.given = a.given[1:]
			if page != 0 {
				tb.Fatalf("page %#x came from nowhere", uint64(page))
			}
			return
		}
		t.stats.AllocSlow++
		t.hold(tb, a)
	}
	if !t.cache[page] {
		tb.Fatalf("page %#x was handed out but does not lie in the cache", uint64(page))
	}
	delete(t.cache, page)
	t.holders[page] = 1
}

// hold moves the pages that the provider gave next to the cache.
func (t *poolTwin) hold(tb testing.TB, a *arena) {
	tb.Helper()
	n := min(64, t.free)
	if len(a.given) == 0 || len(a.given[0]) != n {
		tb.Fatalf("the provider gave %v, want %d pages once", a.given, n)
	}
	for _, p := range a.given[0] {
		t.cache[p] = true
	}
	a.given = a.given[1:]
	t.free -= n
	t.stats.HoldCnt += uint32(n)
}

func (t *poolTwin) put(page pagepool.Page, direct bool) pagepool.PutCount {
	if t.holders[page]--; t.holders[page] > 0 {
		t.stats.RecycleReleasedRefcnt++
		return pagepool.PutCount{Shared: 1}
	}
	delete(t.holders, page)
	if direct && !t.retired {
		if len(t.cache) < 128 {
			t.cache[page] = true
			t.stats.RecycleCached++
			return pagepool.PutCount{Cached: 1}
		}
		t.stats.RecycleCacheFull++
	}
	if t.ring.produce([]pagepool.Page{page}) == 1 {
		t.stats.RecycleRing++
		return pagepool.PutCount{Ring: 1}
	}
	t.stats.RecycleRingFull++
	t.release(1)
	return pagepool.PutCount{Released: 1}
}

func (t *poolTwin) putBulk(pages []pagepool.Page, direct bool) pagepool.PutCount {
	var sum pagepool.PutCount
	for _, p := range pages {
		c := t.put(p, direct)
		sum.Cached += c.Cached
		sum.Ring += c.Ring
		sum.Released += c.Released
		sum.Shared += c.Shared
	}
	if sum.Released > 0 {
		t.stats.ProduceFull++
	}
	return sum
}

func (t *poolTwin) release(n int) {
	t.free += n
	t.stats.ReleaseCnt += uint32(n)
}

func (t *poolTwin) dropFromRing(n int) {
	t.stats.RingTaken += uint64(n)
	t.release(n)
}

func (t *poolTwin) flush() {
	t.release(len(t.cache))
	clear(t.cache)
	for len(t.ring.queue) > 0 {
		t.dropFromRing(len(t.ring.consume(64)))
	}
}

func (t *poolTwin) retire() {
	t.release(len(t.cache))
	clear(t.cache)
	t.dropFromRing(len(t.ring.cleanup()))
	t.retired = true
}

// check compares everything that can be seen of the pool with the twin.
func (t *poolTwin) check(tb testing.TB, pool *pagepool.PagePool, a *arena) {
	tb.Helper()
	want := t.stats
	want.CacheFrames, want.RingFrames, want.RingSize = len(t.cache), len(t.ring.queue), t.ring.size
	pool.Publish()
	if got := pool.Stats(); got != want {
		tb.Fatalf("statistics are\n %+v, want\n %+v", got, want)
	}
	wantOwner := pagepool.OwnerCounts{Cache: len(t.cache), Hold: uint64(want.HoldCnt), RingTaken: want.RingTaken}
	if got := pool.OwnerCounts(); got != wantOwner {
		tb.Fatalf("owner's counts are %+v, want %+v", got, wantOwner)
	}
	if a.freeLen() != t.free {
		tb.Fatalf("the provider has %d pages, want %d", a.freeLen(), t.free)
	}
	inflight := len(t.cache) + len(t.ring.queue) + len(t.holders)
	if got := pool.Inflight(); int(got) != inflight {
		tb.Fatalf("%d pages are in flight, want %d: cache, ring and holders", got, inflight)
	}
}

// poolRun plays operations on a pool and its twin.
type poolRun struct {
	*testing.T
	pool *pagepool.PagePool
	twin *poolTwin
	a    *arena
	refs *pagepool.Refs
	held []pagepool.Page // a page once for each holder
}

func newPoolRun(t *testing.T, ringSize int, shared bool) *poolRun {
	const pages = 700
	r := &poolRun{T: t, twin: newPoolTwin(pages, ringSize)}
	first := pagepool.Page(1<<32 - 300*2048 + 1) // the pages lie across 2^32
	if shared {
		var err error
		if r.refs, err = pagepool.NewRefs(first, 2048, pages); err != nil {
			t.Fatal(err)
		}
	}
	r.a = newArena(t, first, 2048, pages)
	var err error
	r.pool, err = pagepool.New(pagepool.Params{Name: "twin", RingSize: ringSize, Provider: r.a, Refs: r.refs})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *poolRun) op(op, n byte) {
	switch op %= 20; {
	case op < 3:
		p := r.pool.Alloc()
		r.twin.alloc(r, p, r.a)
		r.hold(p)
	case op < 7:
		dst := make([]pagepool.Page, n)
		got := r.pool.AllocBulk(dst)
		for _, p := range dst[:got] {
			r.hold(p)
		}
		r.allocated(dst, got)
	case op < 9:
		if p := r.takeHeld(1); len(p) == 1 {
			want := r.twin.putBulk(p, op == 7)
			if got := r.pool.Put(p[0], op == 7); got != want {
				r.Fatalf("a page went to %+v, want %+v", got, want)
			}
		}
	case op < 14:
		ps := r.takeHeld(int(n))
		want := r.twin.putBulk(ps, op < 11)
		if got := r.pool.PutBulk(ps, op < 11); got != want {
			r.Fatalf("a bulk of %d went to %+v, want %+v", len(ps), got, want)
		}
	case op < 17:
		if r.refs != nil && len(r.held) > 0 {
			p := r.held[int(n)%len(r.held)]
			r.refs.Get(p)
			r.twin.holders[p]++
			r.held = append(r.held, p)
		}
	case op == 17:
		err := r.pool.Resize(int(n)*2 + 1)
		if (err != nil) != r.twin.retired {
			r.Fatalf("resize gives error %v, retired is %v", err, r.twin.retired)
		}
		if err == nil {
			r.twin.dropFromRing(len(r.twin.ring.resize(int(n)*2 + 1)))
		}
	case op == 18:
		r.pool.Flush()
		r.twin.flush()
	case n > 250:
		r.pool.Retire()
		r.twin.retire()
	}
	r.twin.check(r, r.pool, r.a)
}

// allocated tells the twin what AllocBulk did: got pages, and one more call if that was not enough.
func (r *poolRun) allocated(dst []pagepool.Page, got int) {
	if got < len(dst) {
		dst = dst[:got+1]
		dst[got] = 0
	}
	for _, p := range dst {
		r.twin.alloc(r, p, r.a)
	}
}

func (r *poolRun) hold(p pagepool.Page) {
	if p != 0 {
		r.held = append(r.held, p)
	}
}

// takeHeld removes the oldest n held pages.
func (r *poolRun) takeHeld(n int) []pagepool.Page {
	n = min(n, len(r.held))
	ps := slices.Clone(r.held[:n])
	r.held = r.held[n:]
	return ps
}

// finish puts all pages and destroys the pool: the provider must have each page once.
func (r *poolRun) finish() {
	ps := r.takeHeld(len(r.held))
	r.twin.putBulk(ps, false)
	r.pool.PutBulk(ps, false)
	if err := r.pool.Destroy(context.Background()); err != nil {
		r.Fatal(err)
	}
	if r.a.freeLen() != 700 || r.pool.Inflight() != 0 {
		r.Fatalf("the provider has %d of 700 pages and %d are in flight", r.a.freeLen(), r.pool.Inflight())
	}
}

func TestPagePoolDoesWhatItsTwinDoes(t *testing.T) {
	for seed := range uint64(24) {
		rng := rand.New(rand.NewPCG(seed, 2))
		r := newPoolRun(t, int(seed*seed)%500+1, seed%2 == 1)
		for range 250 {
			op, n := byte(rng.Uint32()), byte(rng.Uint32())
			if op%20 == 19 && seed%4 > 0 {
				continue
			}
			r.op(op, n)
		}
		r.finish()
	}
}

func FuzzPagePool(f *testing.F) {
	f.Fuzz(func(t *testing.T, ringSize uint16, shared bool, ops []byte) {
		r := newPoolRun(t, int(ringSize)%600+1, shared)
		for ; len(ops) >= 2; ops = ops[2:] {
			r.op(ops[0], ops[1])
		}
		r.finish()
	})
}
