// SPDX-License-Identifier: Apache-2.0

package pagepool_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/xskfwd/xskfwd/pagepool"
)

// arena is the memory behind the pools of these tests. It knows each of its pages and who has it, so that a page that is
// freed twice, or was never its own, fails the test.
type arena struct {
	t     testing.TB
	mutex sync.Mutex
	free  []pagepool.Page
	out   map[pagepool.Page]bool
	calls int
	given [][]pagepool.Page // what each call of AllocPages gave, until somebody takes it from here
	limit int               // pages in one AllocPages call; 0: no limit
}

// newArena returns a provider of n pages, stride apart, the first of which is first.
func newArena(t testing.TB, first pagepool.Page, stride uint64, n int) *arena {
	a := &arena{t: t, out: make(map[pagepool.Page]bool, n)}
	for i := n - 1; i >= 0; i-- {
		a.free = append(a.free, first+pagepool.Page(uint64(i)*stride))
	}
	return a
}

func (a *arena) AllocPages(dst []pagepool.Page) int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.calls++
	n := min(len(dst), len(a.free))
	if a.limit > 0 {
		n = min(n, a.limit)
	}
	for i := range dst[:n] {
		page := a.free[len(a.free)-1]
		a.free = a.free[:len(a.free)-1]
		a.out[page] = true
		dst[i] = page
	}
	a.given = append(a.given, slices.Clone(dst[:n]))
	return n
}

func (a *arena) FreePages(pages []pagepool.Page) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, page := range pages {
		if !a.out[page] {
			a.t.Errorf("page %#x was freed but is not out", uint64(page))
			continue
		}
		delete(a.out, page)
		a.free = append(a.free, page)
	}
}

// freeLen returns how many pages the arena has.
func (a *arena) freeLen() int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return len(a.free)
}

// newPool returns a pool named "pool" over its own arena of n pages.
func newPool(t testing.TB, n int, change func(*pagepool.Params)) (*pagepool.PagePool, *arena) {
	t.Helper()
	a := newArena(t, 0x1001, 0x1000, n)
	params := pagepool.Params{Name: "pool", ID: 1, Provider: a}
	if change != nil {
		change(&params)
	}
	pool, err := pagepool.New(params)
	if err != nil {
		t.Fatal(err)
	}
	return pool, a
}

// allocAll takes n pages out of the pool.
func allocAll(t testing.TB, pool *pagepool.PagePool, n int) []pagepool.Page {
	t.Helper()
	pages := make([]pagepool.Page, n)
	if got := pool.AllocBulk(pages); got != n {
		t.Fatalf("AllocBulk gave %d pages, want %d", got, n)
	}
	return pages
}
