// SPDX-License-Identifier: Apache-2.0

package pagepool_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xskfwd/xskfwd/pagepool"
)

// Several producers and consumers on one ring, which is resized meanwhile: no page is lost, none comes twice, and each
// producer's pages come in order to each consumer. What a producer wrote before is seen by whoever takes the page.
func TestPtrRingUnderProducersConsumersAndResize(t *testing.T) {
	const producers, consumers, each = 4, 2, 4000
	r := newRing(t, 100)
	payload := make([]uint64, producers*each+1)
	seen := make([]atomic.Uint32, producers*each+1)
	var left atomic.Int64
	left.Store(producers * each)

	var wg sync.WaitGroup
	for w := range producers {
		wg.Go(func() { produceAll(r, payload, w*each+1, each, 1+w*7) })
	}
	for c := range consumers {
		wg.Go(func() {
			var last [producers]pagepool.Page
			dst := make([]pagepool.Page, 1+c*40)
			for left.Load() > 0 {
				n := r.ConsumeBatch(dst)
				if n == 0 {
					runtime.Gosched()
				}
				for _, p := range dst[:n] {
					w := int(p-1) / each
					if p <= last[w] || payload[p] != uint64(p)*3 {
						t.Errorf("page %d came after %d with payload %d", p, last[w], payload[p])
					}
					last[w] = p
					seen[p].Add(1)
				}
				left.Add(-int64(n))
			}
		})
	}
	wg.Go(func() {
		for size := 1; left.Load() > 0; size = size%300 + 37 {
			over, err := r.Resize(size)
			if err != nil {
				t.Error(err)
			}
			for _, p := range over {
				seen[p].Add(1)
			}
			left.Add(-int64(len(over)))
			runtime.Gosched()
		}
	})
	wg.Wait()
	for p := range seen[1:] {
		if n := seen[p+1].Load(); n != 1 {
			t.Fatalf("page %d came %d times", p+1, n)
		}
	}
}

// produceAll puts the pages from first on into the ring, in bulks of the given size, and writes each page's payload.
func produceAll(r *pagepool.PtrRing, payload []uint64, first, n, bulk int) {
	for n > 0 {
		ps := pageRange(pagepool.Page(first), min(bulk, n))
		for _, p := range ps {
			payload[p] = uint64(p) * 3
		}
		for in := 0; in < len(ps); {
			got := r.ProduceBulk(ps[in:])
			if got == 0 {
				runtime.Gosched()
			}
			in += got
		}
		first += len(ps)
		n -= len(ps)
	}
}

func TestPtrRingKeepsTheOrderOfEachProducer(t *testing.T) {
	const producers, each = 3, 5000
	r := newRing(t, 61)
	payload := make([]uint64, producers*each+1)
	var wg sync.WaitGroup
	for w := range producers {
		wg.Go(func() { produceAll(r, payload, w*each+1, each, 1+w*15) })
	}
	var last [producers]pagepool.Page
	dst := make([]pagepool.Page, 20)
	for left := producers * each; left > 0; {
		n := r.ConsumeBatch(dst)
		if n == 0 {
			runtime.Gosched()
		}
		for _, p := range dst[:n] {
			w := int(p-1) / each
			if p <= last[w] || payload[p] != uint64(p)*3 {
				t.Fatalf("page %d came after %d with payload %d", p, last[w], payload[p])
			}
			last[w] = p
		}
		left -= n
	}
	wg.Wait()
}

// An owner hands pages to several workers, which write to them and put them; others read the statistics and resize the
// ring. Each page has one holder at a time (the race detector watches the page's word), and all come home.
func TestPagePoolUnderForeignPutsStatsAndResize(t *testing.T) {
	const workers, pages, rounds = 3, 600, 1500
	pool, a := newPool(t, pages, func(p *pagepool.Params) { p.RingSize = 200 })
	words := make([]int, pages+2)
	stop := make(chan struct{})
	queues := make([]chan []pagepool.Page, workers)
	var puts, watch sync.WaitGroup
	for w := range queues {
		queues[w] = make(chan []pagepool.Page, 4)
		puts.Go(func() {
			for ps := range queues[w] {
				for _, p := range ps {
					words[p>>12]++
				}
				if w == 0 {
					for _, p := range ps {
						pool.Put(p, false)
					}
					continue
				}
				pool.PutBulk(ps, false)
			}
		})
	}
	watch.Go(func() {
		for size := 1; ; size = size%400 + 61 {
			select {
			case <-stop:
				return
			default:
			}
			if n := pool.Inflight(); n < 0 || n > pages {
				t.Errorf("%d pages are in flight", n)
			}
			pool.Stats()
			if err := pool.Resize(size); err != nil {
				t.Error(err)
			}
			runtime.Gosched()
		}
	})
	handed := own(t, pool, queues, words, rounds)
	for _, q := range queues {
		close(q)
	}
	puts.Wait()
	close(stop)
	watch.Wait()

	s := publishedStats(pool)
	if got := s.AllocFast + s.AllocRefill + s.AllocSlow; got != handed {
		t.Errorf("%d pages were handed out, counted are %d: %+v", handed, got, s)
	}
	if got := s.RecycleCached + s.RecycleRing + s.RecycleRingFull + s.RecycleReleasedRefcnt; got != handed {
		t.Errorf("%d pages were put, counted are %d: %+v", handed, got, s)
	}
	if uint64(s.RingFrames) != s.RecycleRing-s.RingTaken {
		t.Errorf("the ring has %d pages: %+v", s.RingFrames, s)
	}
	if err := pool.Destroy(context.Background()); err != nil {
		t.Error(err)
	}
	if a.freeLen() != pages {
		t.Errorf("the provider has %d of %d pages", a.freeLen(), pages)
	}
}

// own is the owner of the pool: it allocs, writes, puts a third itself and gives the rest to the workers. It returns how
// many pages it was handed.
func own(t *testing.T, pool *pagepool.PagePool, queues []chan []pagepool.Page, words []int, rounds int) uint64 {
	var handed uint64
	for round := range rounds {
		ps := make([]pagepool.Page, 1+round%50)
		ps = ps[:pool.AllocBulk(ps)]
		handed += uint64(len(ps))
		for _, p := range ps {
			words[p>>12]++
		}
		if to := round % (len(queues) + 1); to < len(queues) {
			queues[to] <- ps
		} else if c := pool.PutBulk(ps, true); c.Shared > 0 {
			t.Errorf("pages went to %+v", c)
		}
		pool.Publish()
	}
	return handed
}

// Several holders put the same page at the same time: exactly one of them recycles it.
func TestPagePoolLastOfSeveralHoldersRecycles(t *testing.T) {
	const pages, holders = 64, 4
	first := pagepool.Page(1<<32 - 32*4096 + 1)
	refs, err := pagepool.NewRefs(first, 4096, pages)
	if err != nil {
		t.Fatal(err)
	}
	a := newArena(t, first, 4096, pages)
	pool, err := pagepool.New(pagepool.Params{Name: "shared", Provider: a, Refs: refs})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		held := allocAll(t, pool, pages)
		for _, p := range held {
			for range holders - 1 {
				refs.Get(p)
			}
		}
		var ring, shared atomic.Int64
		var wg sync.WaitGroup
		for range holders {
			wg.Go(func() {
				ps := append([]pagepool.Page(nil), held...)
				c := pool.PutBulk(ps, false)
				ring.Add(int64(c.Ring))
				shared.Add(int64(c.Shared))
			})
		}
		wg.Wait()
		if ring.Load() != pages || shared.Load() != pages*(holders-1) {
			t.Fatalf("%d pages were recycled and %d puts left other holders", ring.Load(), shared.Load())
		}
		for _, p := range held {
			if n := refs.Holders(p); n != 1 {
				t.Fatalf("page %#x lies in the ring with %d holders", uint64(p), n)
			}
		}
	}
	if s := publishedStats(pool); s.RecycleReleasedRefcnt != 50*pages*(holders-1) {
		t.Errorf("statistics are %+v", s)
	}
	if err := pool.Destroy(context.Background()); err != nil || a.freeLen() != pages {
		t.Errorf("destroy gives %v and the provider has %d pages", err, a.freeLen())
	}
}

// Puts that come while the pool is destroyed go home as well, whatever the moment.
func TestPagePoolDestroyRacesWithForeignPuts(t *testing.T) {
	for range 200 {
		pool, a := newPool(t, 128, nil)
		pages := allocAll(t, pool, 128)
		var wg sync.WaitGroup
		for w := range 2 {
			wg.Go(func() {
				for _, p := range pages[w*64 : w*64+64] {
					pool.Put(p, false)
				}
			})
		}
		for range 2 {
			wg.Go(func() {
				if err := pool.Destroy(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if a.freeLen() != 128 {
			t.Fatalf("the provider has %d of 128 pages", a.freeLen())
		}
	}
}
