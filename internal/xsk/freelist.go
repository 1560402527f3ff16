// SPDX-License-Identifier: Apache-2.0

package xsk

import "github.com/xskfwd/xskfwd/pagepool"

// Provider returns the free list as the memory provider of one pool: pages it
// hands out carry the pool's id. The provider of id 0, which marks free pages,
// has no pages.
func (u *Umem) Provider(id pagepool.MemID) pagepool.Provider { return provider{u, id} }

type provider struct {
	u  *Umem
	id pagepool.MemID
}

// AllocPages implements pagepool.Provider.
func (p provider) AllocPages(dst []pagepool.Page) int {
	if p.id == 0 {
		return 0
	}
	n := p.u.take(dst)
	for _, page := range dst[:n] {
		p.u.SetMem(page, p.id)
	}
	return n
}

// FreePages implements pagepool.Provider.
func (p provider) FreePages(pages []pagepool.Page) { p.u.giveBack(pages) }

// FreeFrames is the number of chunks on the free list.
func (u *Umem) FreeFrames() int { return int(u.freeCount.Load()) }

// BadFrees counts pages given back that were no page of this UMEM, or were on
// the free list already. Each is a bug; none gets onto the list.
func (u *Umem) BadFrees() uint64 { return u.badFrees.Load() }

// take moves pages from the free list to dst and returns how many.
func (u *Umem) take(dst []pagepool.Page) int {
	u.freeMu.Lock()
	defer u.freeMu.Unlock()
	n := min(len(dst), len(u.free))
	rest := len(u.free) - n
	for i := range n { // the top of the list first
		dst[i] = u.free[len(u.free)-1-i]
	}
	u.free = u.free[:rest]
	// Ordering: under freeMu; FreeFrames reads a number that was right at some
	// time.
	u.freeCount.Store(int64(rest))
	return n
}

// giveBack puts pages on the free list, but for those that are no pages or are
// there already: a page on the list twice would be two packets in one chunk.
func (u *Umem) giveBack(pages []pagepool.Page) {
	u.freeMu.Lock()
	defer u.freeMu.Unlock()
	for _, p := range pages {
		if p&1 == 0 || u.MemOf(u.AddrOf(p)) == 0 {
			u.badFrees.Add(1)
			continue
		}
		u.SetMem(p, 0)
		u.free = append(u.free, p) // never grows: each chunk is there once
	}
	// Ordering: as in take.
	u.freeCount.Store(int64(len(u.free)))
}
