// SPDX-License-Identifier: Apache-2.0

package pagepool_test

import (
	"fmt"
	"testing"

	"github.com/xskfwd/xskfwd/pagepool"
)

// stock is a provider without bookkeeping: a stack for one goroutine.
type stock struct{ free []pagepool.Page }

func newStock(n int) *stock { return &stock{free: pageRange(1, n)} }

func (s *stock) AllocPages(dst []pagepool.Page) int {
	n := copy(dst, s.free[max(0, len(s.free)-len(dst)):])
	s.free = s.free[:len(s.free)-n]
	return n
}

func (s *stock) FreePages(pages []pagepool.Page) { s.free = append(s.free, pages...) }

// stockedPool returns a pool over a stock of 4096 pages.
func stockedPool(b *testing.B, ringSize int, refs *pagepool.Refs) *pagepool.PagePool {
	pool, err := pagepool.New(pagepool.Params{Name: "bench", RingSize: ringSize, Provider: newStock(4096), Refs: refs})
	if err != nil {
		b.Fatal(err)
	}
	return pool
}

// perPage reports the time of one of the pages that an operation handles.
func perPage(b *testing.B, pages int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(pages), "ns/page")
}

func BenchmarkPtrRingProduceConsume(b *testing.B) {
	r := newRing(b, pagepool.DefaultRingSize)
	b.ReportAllocs()
	for b.Loop() {
		r.Produce(1)
		r.Consume()
	}
	perPage(b, 1)
}

func BenchmarkPtrRingProduceBulkConsumeBatch(b *testing.B) {
	for _, n := range []int{1, 4, 16, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := newRing(b, pagepool.DefaultRingSize)
			ps := pageRange(1, n)
			b.ReportAllocs()
			for b.Loop() {
				r.ProduceBulk(ps)
				r.ConsumeBatch(ps)
			}
			perPage(b, n)
		})
	}
}

// BenchmarkPtrRingAcrossGoroutines has one goroutine produce what another consumes.
func BenchmarkPtrRingAcrossGoroutines(b *testing.B) {
	for _, n := range []int{1, 16} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := newRing(b, pagepool.DefaultRingSize)
			stop := make(chan struct{})
			done := make(chan struct{})
			go func() {
				defer close(done)
				var out [pagepool.RefillSize]pagepool.Page
				for {
					if r.ConsumeBatch(out[:]) > 0 {
						continue
					}
					select {
					case <-stop:
						return
					default:
					}
				}
			}()
			ps := pageRange(1, n)
			b.ReportAllocs()
			for b.Loop() {
				for in := 0; in < n; {
					in += r.ProduceBulk(ps[in:])
				}
			}
			close(stop)
			<-done
			perPage(b, n)
		})
	}
}

func BenchmarkPtrRingFull(b *testing.B) {
	r := newRing(b, 16)
	r.ProduceBulk(pageRange(1, 16))
	b.ReportAllocs()
	for b.Loop() {
		r.Full()
	}
}

func BenchmarkPtrRingEmpty(b *testing.B) {
	r := newRing(b, 16)
	b.ReportAllocs()
	for b.Loop() {
		r.Empty()
	}
}

func BenchmarkPtrRingResize(b *testing.B) {
	r := newRing(b, 1024)
	r.ProduceBulk(pageRange(1, 512))
	size := 1024
	b.ReportAllocs()
	for b.Loop() {
		size ^= 1024 ^ 768
		if _, err := r.Resize(size); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPagePoolAllocPut(b *testing.B) {
	for _, c := range []struct {
		name   string
		direct bool
	}{{"direct", true}, {"foreign", false}} {
		b.Run(c.name, func(b *testing.B) {
			pool := stockedPool(b, 0, nil)
			b.ReportAllocs()
			for b.Loop() {
				pool.Put(pool.Alloc(), c.direct)
			}
			perPage(b, 1)
		})
	}
}

func BenchmarkPagePoolAllocPutBulk(b *testing.B) {
	for _, c := range []struct {
		name   string
		direct bool
		n      int
	}{{"direct/1", true, 1}, {"direct/16", true, 16}, {"direct/64", true, 64},
		{"foreign/1", false, 1}, {"foreign/4", false, 4}, {"foreign/16", false, 16}, {"foreign/64", false, 64}} {
		b.Run(c.name, func(b *testing.B) {
			pool := stockedPool(b, 0, nil)
			ps := make([]pagepool.Page, c.n)
			b.ReportAllocs()
			for b.Loop() {
				pool.AllocBulk(ps)
				pool.PutBulk(ps, c.direct)
			}
			perPage(b, c.n)
		})
	}
}

// BenchmarkPagePoolPutShared puts each page twice: once by a holder among others, once by the last.
func BenchmarkPagePoolPutShared(b *testing.B) {
	refs, err := pagepool.NewRefs(1, 1, 4096)
	if err != nil {
		b.Fatal(err)
	}
	pool := stockedPool(b, 0, refs)
	b.ReportAllocs()
	for b.Loop() {
		page := pool.Alloc()
		refs.Get(page)
		pool.Put(page, true)
		pool.Put(page, true)
	}
}

// BenchmarkPagePoolSlowPath takes each batch from the provider and gives it back.
func BenchmarkPagePoolSlowPath(b *testing.B) {
	pool := stockedPool(b, 0, nil)
	b.ReportAllocs()
	for b.Loop() {
		pool.Put(pool.Alloc(), true)
		pool.Flush()
	}
	perPage(b, pagepool.RefillSize)
}

// BenchmarkPagePoolRingFull releases bulks of 16 because the ring has one slot.
func BenchmarkPagePoolRingFull(b *testing.B) {
	pool := stockedPool(b, 1, nil)
	pool.Put(pool.Alloc(), false)
	ps := make([]pagepool.Page, 16)
	b.ReportAllocs()
	for b.Loop() {
		pool.AllocBulk(ps)
		pool.PutBulk(ps, false)
	}
	perPage(b, len(ps))
}

// BenchmarkPagePoolPublish is one poll of 64 packets, published.
func BenchmarkPagePoolPublish(b *testing.B) {
	pool := stockedPool(b, 0, nil)
	b.Run("idle", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			pool.Publish()
		}
	})
	b.Run("poll", func(b *testing.B) {
		ps := make([]pagepool.Page, 64)
		b.ReportAllocs()
		for b.Loop() {
			pool.AllocBulk(ps)
			pool.PutBulk(ps, true)
			pool.Publish()
		}
	})
}

func BenchmarkPagePoolStats(b *testing.B) {
	pool := stockedPool(b, 0, nil)
	b.ReportAllocs()
	for b.Loop() {
		pool.Stats()
	}
}

func BenchmarkPagePoolInflight(b *testing.B) {
	pool := stockedPool(b, 0, nil)
	b.ReportAllocs()
	for b.Loop() {
		pool.Inflight()
	}
}

func BenchmarkPagePoolResize(b *testing.B) {
	pool := stockedPool(b, 0, nil)
	size := 1024
	b.ReportAllocs()
	for b.Loop() {
		size ^= 1024 ^ 768
		if err := pool.Resize(size); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRefsGetPut(b *testing.B) {
	refs, err := pagepool.NewRefs(1, 1, 64)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		refs.Get(5)
	}
}
