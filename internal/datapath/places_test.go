// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"

	"github.com/xskfwd/xskfwd/pagepool"
)

// places is where each chunk of the UMEM is, found by looking and not by
// counting: an independent twin of TakeCensus.
type places struct {
	r     *rig
	of    map[uint64]string // chunk address: place
	count map[string]int    // pages by "unit place"
	fault error
}

// look walks all places. It takes each pool's cache out and puts it back, in
// order. The ring of a pool cannot be looked into, so what is nowhere else has
// to be in it: as many pages as it has.
func (r *rig) look() *places {
	p := &places{r: r, of: map[uint64]string{}, count: map[string]int{}}
	for i := range r.umem.Frames() {
		if addr := uint64(i) * 2048; r.umem.MemOf(addr) == 0 {
			p.of[addr] = "free"
			p.count["free"]++
		}
	}
	for i, u := range r.all {
		p.lookAtPool(i, u)
		at := u.k.Places()
		p.put("fill", i, at.Fill...)
		p.put("rx", i, at.Rx...)
		p.put("tx", -1, at.Tx...)
		p.put("tx", -1, at.InFlight...)
		p.put("done", -1, at.Completion...)
	}
	p.findRings()
	return p
}

// lookAtPool notes the pages of a pool's cache.
func (p *places) lookAtPool(i int, u *unit) {
	pages := make([]pagepool.Page, u.pool.OwnerCounts().Cache)
	if n := u.pool.AllocBulk(pages); n != len(pages) {
		p.fail("pool %d: its cache gave %d pages, not %d", i, n, len(pages))
	}
	for _, page := range pages {
		p.put("cache", i, p.r.umem.AddrOf(page))
	}
	for j := len(pages) - 1; j >= 0; j-- {
		u.pool.Put(pages[j], true)
	}
}

// put notes pages in a place, as pages of their own pool. A place that holds
// pages of one pool only says which by owner.
func (p *places) put(place string, owner int, addrs ...uint64) {
	for _, addr := range addrs {
		page := p.r.umem.PageOf(addr)
		if page == 0 {
			continue // no frame: the test put it there
		}
		chunk := p.r.umem.AddrOf(page)
		unit := int(p.r.umem.MemOf(chunk)) - 1
		if owner >= 0 && unit != owner {
			p.fail("chunk %d of pool %d is in %s of pool %d", chunk, unit, place, owner)
		}
		if other, ok := p.of[chunk]; ok {
			p.fail("chunk %d is in %s and in %s", chunk, other, place)
		}
		p.of[chunk] = place
		p.count[fmt.Sprint(unit, place)]++
	}
}

// findRings takes what is nowhere else to be in its pool's ring.
func (p *places) findRings() {
	for i := range p.r.umem.Frames() {
		addr := uint64(i) * 2048
		if _, ok := p.of[addr]; !ok {
			p.put("ring", -1, addr)
		}
	}
	for i, u := range p.r.all {
		if got, want := p.count[fmt.Sprint(i, "ring")], u.pool.Stats().RingFrames; got != want {
			p.fail("pool %d: %d pages are nowhere else than in its ring, which has %d", i, got, want)
		}
	}
}

func (p *places) fail(format string, args ...any) {
	if p.fault == nil {
		p.fault = fmt.Errorf(format, args...)
	}
}

// mustBeConsistent compares the census with what is found by looking.
func (r *rig) mustBeConsistent(when string) {
	r.t.Helper()
	p, cuts := r.look(), r.cuts()
	if p.fault != nil {
		r.t.Fatalf("%s: %v", when, p.fault)
	}
	pooled := int64(0)
	for i := range cuts {
		c := TakeCensus(i, cuts)
		pooled += c.Sum()
		found := func(place string) int64 { return int64(p.count[fmt.Sprint(i, place)]) }
		// What is on its way out is told apart by looks at rings which several
		// pools may share; together it is exact.
		want := Census{
			Cache: found("cache"), Ring: found("ring"), Fill: found("fill"), Rx: found("rx"),
			Tx: found("tx") + found("done"),
		}
		got := c
		got.Tx, got.Done = c.Tx+c.Done, 0
		if got != want || c.Tx < 0 || c.Done < 0 {
			r.t.Fatalf("%s: census of pool %d: got %+v, found %+v", when, i, c, want)
		}
		if c.Sum() != int64(r.all[i].pool.Inflight()) {
			r.t.Fatalf("%s: census of pool %d sums to %d, it has %d pages", when, i, c.Sum(), r.all[i].pool.Inflight())
		}
	}
	if free := int64(r.umem.FreeFrames()); free+pooled != int64(r.umem.Frames()) {
		r.t.Fatalf("%s: %d free and %d in pools of %d", when, free, pooled, r.umem.Frames())
	}
}
