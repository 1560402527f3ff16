// SPDX-License-Identifier: Apache-2.0

package bulk_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/xskfwd/xskfwd/bulk"
	"github.com/xskfwd/xskfwd/pagepool"
)

// memory is the provider behind the pools of these tests: pages 1<<32*id + 1, 2, ... from a locked free list.
type memory struct {
	lock sync.Mutex
	free []pagepool.Page
}

func newMemory(id pagepool.MemID, n int) *memory {
	m := new(memory)
	for i := range n {
		m.free = append(m.free, pagepool.Page(uint64(id)<<32+uint64(i)+1))
	}
	return m
}

func (m *memory) AllocPages(dst []pagepool.Page) int {
	m.lock.Lock()
	defer m.lock.Unlock()
	n := copy(dst, m.free[max(0, len(m.free)-len(dst)):])
	m.free = m.free[:len(m.free)-n]
	return n
}

func (m *memory) FreePages(pages []pagepool.Page) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.free = append(m.free, pages...)
}

// memOf is the number of the memory that a page of these tests comes from.
func memOf(p pagepool.Page) pagepool.MemID { return pagepool.MemID(p >> 32) }

// rig is a table with pools of several owners.
type rig struct {
	table *bulk.MemTable
	pools []*pagepool.PagePool // pools[id], pools[0] is nil
	stats bulk.Stats
}

const worker = 1

// newRig makes pools with the numbers 1, 2, ... of the given owners, each with n pages.
func newRig(t testing.TB, n int, owners ...int) *rig {
	t.Helper()
	r := &rig{table: bulk.NewMemTable(), pools: make([]*pagepool.PagePool, 1)}
	for i, owner := range owners {
		id := pagepool.MemID(i + 1)
		pool, err := pagepool.New(pagepool.Params{Name: "pool", ID: id, Owner: owner, Provider: newMemory(id, n)})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.table.Register(id, bulk.Mem{Pool: pool}); err != nil {
			t.Fatal(err)
		}
		r.pools = append(r.pools, pool)
	}
	r.stats.Grow(r.table.Len())
	return r
}

// pages allocates one page of each given memory.
func (r *rig) pages(t testing.TB, ids ...pagepool.MemID) []pagepool.Page {
	t.Helper()
	ps := make([]pagepool.Page, 0, len(ids))
	for _, id := range ids {
		p := r.pools[id].Alloc()
		if p == 0 {
			t.Fatalf("pool %d has no page", id)
		}
		ps = append(ps, p)
	}
	return ps
}

// sequence repeats ids up to n of them.
func sequence(n int, ids ...pagepool.MemID) []pagepool.MemID {
	seq := make([]pagepool.MemID, n)
	for i := range seq {
		seq[i] = ids[i%len(ids)]
	}
	return seq
}

// returnAll runs one completion loop over pages.
func (r *rig) returnAll(size int, rule bulk.Rule, pages []pagepool.Page) {
	var b bulk.FrameBulk
	b.Init(r.table, worker, size, rule, &r.stats)
	for _, p := range pages {
		b.Return(p, memOf(p))
	}
	b.Flush()
}

// lengths returns the histogram of bulk lengths as a list of lengths.
func (r *rig) lengths() []int {
	var ls []int
	for l, n := range r.stats.Length {
		for range n {
			ls = append(ls, l)
		}
	}
	return ls
}

func TestFrameBulkFlushesWhenFullAndAtTheEndOfThePoll(t *testing.T) {
	r := newRig(t, 64, worker+1)
	r.returnAll(16, bulk.Partition, r.pages(t, sequence(40, 1)...))
	if got := r.lengths(); !slices.Equal(got, []int{8, 16, 16}) {
		t.Errorf("bulks of lengths %v, want 8, 16, 16", got)
	}
	s := &r.stats
	if s.Pages != 40 || s.Flushes != [3]uint64{2, 0, 1} || s.Flushed != [3]uint64{32, 0, 8} || s.Lookups != 1 {
		t.Errorf("statistics are %+v", s)
	}
	if got := r.stats.ByMem[1]; got != (bulk.Returned{Ring: 40}) {
		t.Errorf("pages went to %+v, want the ring of the foreign pool", got)
	}
}

func TestFrameBulkFlushesOnPoolChangeUnderRuleChange(t *testing.T) {
	r := newRig(t, 64, worker+1, worker+1)
	r.returnAll(16, bulk.Change, r.pages(t, 1, 1, 1, 2, 2, 1, 1, 1, 1))
	if got := r.lengths(); !slices.Equal(got, []int{2, 3, 4}) {
		t.Errorf("bulks of lengths %v, want 2, 3, 4", got)
	}
	s := &r.stats
	if s.Flushes != [3]uint64{0, 2, 1} || s.Flushed != [3]uint64{0, 5, 4} || s.Lookups != 3 {
		t.Errorf("statistics are %+v", s)
	}
}

func TestFrameBulkPartsPoolsAtTheFlushUnderRulePartition(t *testing.T) {
	r := newRig(t, 64, worker+1, worker+1, worker)
	r.returnAll(16, bulk.Partition, r.pages(t, sequence(20, 1, 2, 1, 3)...))
	// The first 16: eight of pool 1, four of 2, four of 3; the last four: two, one, one.
	if got := r.lengths(); !slices.Equal(got, []int{1, 1, 2, 4, 4, 8}) {
		t.Errorf("bulks of lengths %v, want 1, 1, 2, 4, 4, 8", got)
	}
	s := &r.stats
	if s.Flushes != [3]uint64{3, 0, 3} || s.Flushed != [3]uint64{16, 0, 4} || s.Lookups != 3 {
		t.Errorf("statistics are %+v", s)
	}
	want := []bulk.Returned{{}, {Ring: 10}, {Ring: 5}, {Cached: 5}}
	if !slices.Equal(s.ByMem, want) {
		t.Errorf("pages went to %+v, want %+v", s.ByMem, want)
	}
}

func TestFrameBulkKeepsTheOrderWithinAPool(t *testing.T) {
	for _, rule := range []bulk.Rule{bulk.Partition, bulk.Change} {
		r := newRig(t, 64, worker, worker)
		pages := r.pages(t, sequence(20, 1, 2, 2, 1, 1)...)
		r.returnAll(16, rule, pages)
		// The cache is a stack: pages come out in the opposite order.
		slices.Reverse(pages)
		for _, p := range pages {
			if got := r.pools[memOf(p)].Alloc(); got != p {
				t.Fatalf("rule %d: got page %#x, want %#x", rule, got, p)
			}
		}
	}
}

func TestFrameBulkPutsDirectlyToPoolsOfItsOwnerOnly(t *testing.T) {
	r := newRig(t, 64, worker, worker+1, worker)
	r.returnAll(16, bulk.Partition, r.pages(t, 1, 2, 3))
	want := []bulk.Returned{{}, {Cached: 1}, {Ring: 1}, {Cached: 1}}
	if !slices.Equal(r.stats.ByMem, want) {
		t.Errorf("pages went to %+v, want %+v", r.stats.ByMem, want)
	}
}

func TestFrameBulkSizeOneReturnsEachPageOnItsOwn(t *testing.T) {
	for _, size := range []int{1, 0, -5} {
		r := newRig(t, 64, worker+1)
		pages := r.pages(t, sequence(5, 1)...)
		var b bulk.FrameBulk
		b.Init(r.table, worker, size, bulk.Partition, &r.stats)
		for i, p := range pages {
			b.Return(p, 1)
			if got := r.pools[1].Stats().RingFrames; got != i+1 {
				t.Fatalf("size %d: %d pages have come home after %d returns", size, got, i+1)
			}
		}
		b.Flush()
		if s := &r.stats; s.Length[1] != 5 || s.Flushes != [3]uint64{5, 0, 0} {
			t.Errorf("size %d: statistics are %+v", size, s)
		}
	}
}

func TestFrameBulkSizeIsAtMostTheQueue(t *testing.T) {
	for _, size := range []int{2, 7, 16, 17, 1000} {
		r := newRig(t, 64, worker+1)
		r.returnAll(size, bulk.Partition, r.pages(t, sequence(33, 1)...))
		size = min(size, bulk.QueueSize)
		if got := r.stats.Length[size]; got != uint64(33/size) {
			t.Errorf("size %d: %d bulks of that length, want %d", size, got, 33/size)
		}
	}
}

func TestFrameBulkReturnsMemoryOfNoPoolAtOnce(t *testing.T) {
	r := newRig(t, 64, worker+1)
	var got []pagepool.Page
	for _, id := range []pagepool.MemID{0, 9} {
		if err := r.table.Register(id, bulk.Mem{Return: func(p pagepool.Page) { got = append(got, p) }}); err != nil {
			t.Fatal(err)
		}
	}
	var b bulk.FrameBulk
	b.Init(r.table, worker, 16, bulk.Change, &r.stats)
	pages := r.pages(t, 1, 1)
	b.Return(pages[0], 1)
	b.Return(77, 0)
	b.Return(78, 9)
	b.Return(pages[1], 1)
	if !slices.Equal(got, []pagepool.Page{77, 78}) {
		t.Errorf("pages %v have come home before the flush, want 77 and 78", got)
	}
	b.Flush()
	// They neither flush the bulk nor make its pool forgotten.
	s := &r.stats
	if s.Length[2] != 1 || s.Flushes != [3]uint64{0, 0, 1} || s.Lookups != 3 || s.Immediate != 2 || s.Pages != 4 {
		t.Errorf("statistics are %+v", s)
	}
}

func TestFrameBulkCountsPagesOfUnknownMemory(t *testing.T) {
	r := newRig(t, 64, worker+1)
	var b bulk.FrameBulk
	b.Init(r.table, worker, 16, bulk.Partition, &r.stats)
	for _, id := range []pagepool.MemID{0, 2, 1 << 16, 1<<32 - 1} {
		b.Return(5, id)
	}
	b.Flush()
	if s := &r.stats; s.Unknown != 4 || s.Pages != 4 || s.Flushes != [3]uint64{} {
		t.Errorf("statistics are %+v", s)
	}
}

func TestFrameBulkKeepsPoolsAfterAFlush(t *testing.T) {
	r := newRig(t, 64, worker+1, worker+2)
	var b bulk.FrameBulk
	b.Init(r.table, worker, 4, bulk.Partition, &r.stats)
	for _, p := range r.pages(t, sequence(40, 1, 2)...) {
		b.Return(p, memOf(p))
	}
	b.Flush()
	b.Flush()
	if s := &r.stats; s.Lookups != 2 || s.Flushes != [3]uint64{20, 0, 0} {
		t.Errorf("statistics are %+v", s)
	}
}

func TestFrameBulkTakesMorePoolsThanItsQueueHasSlots(t *testing.T) {
	const pools = bulk.QueueSize + 4
	r := newRig(t, 64, slices.Repeat([]int{worker + 1}, pools)...)
	ids := make([]pagepool.MemID, 0, 3*pools)
	for range 3 {
		for id := range pagepool.MemID(pools) {
			ids = append(ids, id+1)
		}
	}
	r.returnAll(16, bulk.Partition, r.pages(t, ids...))
	for id, got := range r.stats.ByMem[1:] {
		if got != (bulk.Returned{Ring: 3}) {
			t.Errorf("pages of pool %d went to %+v", id+1, got)
		}
	}
	checkIdentities(t, &r.stats)
}

// A memory registered in the middle of a poll is found, and counted.
func TestFrameBulkFindsMemoryRegisteredMeanwhile(t *testing.T) {
	r := newRig(t, 64, worker+1)
	var b bulk.FrameBulk
	b.Init(r.table, worker, 16, bulk.Partition, &r.stats)
	b.Return(r.pages(t, 1)[0], 1)
	pool, err := pagepool.New(pagepool.Params{Name: "late", ID: 40, Owner: worker, Provider: newMemory(40, 64)})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.table.Register(40, bulk.Mem{Pool: pool}); err != nil {
		t.Fatal(err)
	}
	b.Return(pool.Alloc(), 40)
	b.Flush()
	if len(r.stats.ByMem) != 41 || r.stats.ByMem[40] != (bulk.Returned{Cached: 1}) {
		t.Errorf("statistics are %+v", r.stats)
	}
}

// checkIdentities checks what always holds of the statistics.
func checkIdentities(t testing.TB, s *bulk.Stats) {
	t.Helper()
	var flushes, flushed, bulks, pages, returned uint64
	for i := range s.Flushes {
		flushes += s.Flushes[i]
		flushed += s.Flushed[i]
	}
	for l, n := range s.Length {
		bulks += n
		pages += uint64(l) * n
	}
	for _, m := range s.ByMem {
		returned += m.Cached + m.Ring + m.Released + m.Shared
	}
	if flushes != bulks || flushed != pages || flushed != returned || s.Pages != flushed+s.Immediate+s.Unknown || s.Length[0] != 0 {
		t.Errorf("statistics do not add up: %+v", s)
	}
}

// What one loop knows of pools ends with it: their numbers may be given to others.
func TestFrameBulkForgetsPoolsAtInit(t *testing.T) {
	r := newRig(t, 64, worker+1)
	var b bulk.FrameBulk
	b.Init(r.table, worker, 16, bulk.Partition, &r.stats)
	b.Return(r.pages(t, 1)[0], 1)
	b.Flush()
	pool, err := pagepool.New(pagepool.Params{Name: "next", ID: 1, Owner: worker, Provider: newMemory(1, 64)})
	if err != nil {
		t.Fatal(err)
	}
	r.table.Unregister(1)
	if err := r.table.Register(1, bulk.Mem{Pool: pool}); err != nil {
		t.Fatal(err)
	}
	b.Init(r.table, worker, 16, bulk.Partition, &r.stats)
	b.Return(pool.Alloc(), 1)
	b.Flush()
	if got := r.stats.ByMem[1]; got != (bulk.Returned{Ring: 1, Cached: 1}) {
		t.Errorf("pages went to %+v, want one to the ring of the first pool and one to the cache of the second", got)
	}
}
