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
