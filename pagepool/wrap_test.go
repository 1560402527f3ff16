// SPDX-License-Identifier: Apache-2.0

package pagepool

import (
	"context"
	"testing"
)

// counter is a provider that makes pages up and counts those it gave and took.
type counter struct {
	next        Page
	given, took int
}

func (c *counter) AllocPages(dst []Page) int {
	for i := range dst {
		c.next++
		dst[i] = c.next
	}
	c.given += len(dst)
	return len(dst)
}

func (c *counter) FreePages(pages []Page) { c.took += len(pages) }

func TestPagePoolInflightHoldsAcrossTheWrapOf32Bits(t *testing.T) {
	for _, start := range []uint64{1<<32 - 1, 1<<32 - 64, 1<<32 - 100, 1<<31 - 30, 1<<64 - 64} {
		c := &counter{next: 1<<32 - 70}
		p, err := New(Params{Name: "wrap", Provider: c, RingSize: 8})
		if err != nil {
			t.Fatal(err)
		}
		p.hold.Store(start)
		p.release.Store(start)
		var held [200]Page
		if n := p.AllocBulk(held[:]); n != len(held) {
			t.Fatalf("start %#x: got %d pages", start, n)
		}
		if got := p.Inflight(); got != 256 {
			t.Errorf("start %#x: %d pages in flight, want 256", start, got)
		}
		if s := p.Stats(); s.HoldCnt != uint32(start)+256 || s.ReleaseCnt != uint32(start) {
			t.Errorf("start %#x: hold %#x and release %#x", start, s.HoldCnt, s.ReleaseCnt)
		}
		if got := p.PutBulk(held[:], false); got != (PutCount{Ring: 8, Released: 192}) {
			t.Errorf("start %#x: pages went to %+v", start, got)
		}
		if got := p.Inflight(); got != 64 {
			t.Errorf("start %#x: %d pages in flight, want 64", start, got)
		}
		if err := p.Destroy(context.Background()); err != nil {
			t.Errorf("start %#x: %v", start, err)
		}
		if c.given != 256 || c.took != 256 || p.Inflight() != 0 {
			t.Errorf("start %#x: %d pages given, %d taken back, %d in flight", start, c.given, c.took, p.Inflight())
		}
	}
}

// The ring has positions instead of running indices, so what can wrap is its counts; the frames in it are a difference.
func TestPagePoolRingFramesHoldAcrossTheWrapOfTheirCounts(t *testing.T) {
	for _, start := range []uint64{1<<32 - 20, 1<<64 - 20} {
		p, err := New(Params{Name: "wrap", Provider: new(counter)})
		if err != nil {
			t.Fatal(err)
		}
		p.ring.counts.Produced = start
		p.ringTaken.Store(start)
		var held [64]Page
		p.AllocBulk(held[:])
		p.PutBulk(held[:50], false)
		if s := p.Stats(); s.RecycleRing-s.RingTaken != 50 || s.RingFrames != 50 {
			t.Errorf("start %#x: %d pages by counts, %d in the ring", start, s.RecycleRing-s.RingTaken, s.RingFrames)
		}
		p.Alloc()
		if s := p.Stats(); s.RecycleRing != s.RingTaken || s.RingFrames != 0 {
			t.Errorf("start %#x: after a refill %+v", start, s)
		}
	}
}

// The owner's counts are only ever subtracted, too.
func TestPagePoolAllocFastHoldsAcrossTheWrapOfItsCounts(t *testing.T) {
	p, err := New(Params{Name: "wrap", Provider: new(counter)})
	if err != nil {
		t.Fatal(err)
	}
	var held [100]Page
	for range 3 {
		p.AllocBulk(held[:])
		p.PutBulk(held[:], true)
		p.Flush() // takes from cacheFilled pages that Put brought: below zero, as a number without sign
	}
	p.Publish()
	if s := p.Stats(); s.AllocFast+s.AllocSlow != 300 || s.AllocSlow != 6 {
		t.Errorf("300 pages are counted as %+v", s)
	}
}
