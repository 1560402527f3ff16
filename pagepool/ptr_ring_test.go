// SPDX-License-Identifier: Apache-2.0

package pagepool_test

import (
	"slices"
	"testing"

	"github.com/xskfwd/xskfwd/pagepool"
)

// newRing returns a ring of the given size.
func newRing(t testing.TB, size int) *pagepool.PtrRing {
	t.Helper()
	r, err := pagepool.NewPtrRing(size)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// pageRange returns the pages from, from+1, ... as many as n.
func pageRange(from pagepool.Page, n int) []pagepool.Page {
	ps := make([]pagepool.Page, n)
	for i := range ps {
		ps[i] = from + pagepool.Page(i)
	}
	return ps
}

// takeAll empties the ring.
func takeAll(r *pagepool.PtrRing) []pagepool.Page {
	var got []pagepool.Page
	for p := r.Consume(); p != 0; p = r.Consume() {
		got = append(got, p)
	}
	return got
}

func TestPtrRingGivesPagesInOrderForAnySize(t *testing.T) {
	for _, size := range []int{1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 100, 1000, 1024} {
		r := newRing(t, size)
		next, want := pagepool.Page(1), pagepool.Page(1)
		for range 20 {
			for range size/2 + 1 {
				if r.Produce(next) {
					next++
				}
			}
			for range size/3 + 1 {
				if p := r.Consume(); p != 0 {
					if p != want {
						t.Fatalf("size %d: got page %d, want %d", size, p, want)
					}
					want++
				}
			}
		}
		for _, p := range takeAll(r) {
			if p != want {
				t.Fatalf("size %d: got page %d, want %d", size, p, want)
			}
			want++
		}
		if want != next {
			t.Errorf("size %d: %d pages were lost", size, next-want)
		}
	}
}

func TestPtrRingRefusesWhenFullAndChangesNothing(t *testing.T) {
	for _, size := range []int{1, 2, 31, 32, 33} {
		r := newRing(t, size)
		if n := r.ProduceBulk(pageRange(1, size+5)); n != size {
			t.Fatalf("size %d: %d pages went in", size, n)
		}
		if !r.Full() {
			t.Errorf("size %d: not full with %d pages", size, size)
		}
		if r.Produce(99) || r.ProduceBulk(pageRange(99, 3)) != 0 {
			t.Errorf("size %d: a full ring took a page", size)
		}
		if got := r.Len(); got != size {
			t.Errorf("size %d: Len is %d", size, got)
		}
		if got := takeAll(r); !slices.Equal(got, pageRange(1, size)) {
			t.Errorf("size %d: got pages %v", size, got)
		}
		if !r.Empty() || r.Len() != 0 {
			t.Errorf("size %d: not empty after the last page: Len is %d", size, r.Len())
		}
		want := pagepool.RingCounts{Produced: uint64(size), Refused: 9, ProduceFull: 3}
		if got := r.Counts(); got != want {
			t.Errorf("size %d: counts %+v, want %+v", size, got, want)
		}
	}
}

func TestPtrRingRefusesTheZeroPage(t *testing.T) {
	r := newRing(t, 8)
	if r.Produce(0) {
		t.Error("the zero page went in")
	}
	if n := r.ProduceBulk([]pagepool.Page{1, 2, 0, 3}); n != 2 {
		t.Errorf("%d pages of a bulk with a zero page at 2 went in", n)
	}
	if got := takeAll(r); !slices.Equal(got, []pagepool.Page{1, 2}) {
		t.Errorf("got pages %v", got)
	}
}

// A consumer holds back fewer than 16 slots, and none in a ring smaller than 32.
func TestPtrRingFreesConsumedSlotsInBatches(t *testing.T) {
	for _, c := range []struct{ size, heldBack int }{{1, 0}, {16, 0}, {31, 0}, {32, 15}, {33, 15}, {1024, 15}} {
		r := newRing(t, c.size)
		r.ProduceBulk(pageRange(1, c.size))
		most := 0
		for consumed := 1; consumed <= c.size; consumed++ {
			r.Consume()
			free := c.size - r.Len()
			refill := pageRange(1000, free)
			got := r.ProduceBulk(refill)
			if got == 0 && consumed < c.size {
				most = max(most, free)
				continue
			}
			break
		}
		if most != c.heldBack {
			t.Errorf("size %d: %d slots were held back, want %d", c.size, most, c.heldBack)
		}
	}
}

func TestPtrRingFreesEverySlotAtTheEndOfTheQueue(t *testing.T) {
	r := newRing(t, 35)
	r.ProduceBulk(pageRange(1, 35))
	got := make([]pagepool.Page, 35)
	r.ConsumeBatch(got[:32])
	r.ConsumeBatch(got[32:])
	if n := r.ProduceBulk(pageRange(101, 40)); n != 35 {
		t.Errorf("%d pages went into a ring of 35 that was emptied", n)
	}
}

func TestPtrRingConsumeBatchTakesAcrossTheEndOfTheQueue(t *testing.T) {
	r := newRing(t, 48)
	r.ProduceBulk(pageRange(1, 40))
	got := make([]pagepool.Page, 64)
	if n := r.ConsumeBatch(got[:36]); n != 36 {
		t.Fatalf("got %d pages, want 36", n)
	}
	if n := r.ProduceBulk(pageRange(41, 30)); n != 30 {
		t.Fatalf("%d pages went in, want 30", n)
	}
	if n := r.ConsumeBatch(got); n != 34 || !slices.Equal(got[:n], pageRange(37, 34)) {
		t.Errorf("got %d pages: %v", n, got[:n])
	}
	if r.ConsumeBatch(got) != 0 || r.ConsumeBatch(nil) != 0 || r.ProduceBulk(nil) != 0 {
		t.Error("pages came from an empty ring, or an empty slice counted")
	}
}

func TestPtrRingResizeKeepsOrderAndHandsBackTheNewest(t *testing.T) {
	for _, c := range []struct{ size, consumed, pages, to int }{
		{8, 0, 0, 3}, {8, 0, 5, 16}, {8, 0, 8, 8}, {8, 3, 8, 4}, {64, 50, 64, 20}, {64, 50, 60, 64}, {64, 20, 64, 1}, {1, 0, 1, 100},
		{1000, 999, 1000, 333},
	} {
		r := newRing(t, c.size)
		r.ProduceBulk(pageRange(1, c.consumed))
		r.ConsumeBatch(make([]pagepool.Page, c.consumed))
		// Slots that are held back make no room; the end of the queue has made all of it, or the pages fit anyhow.
		in := r.ProduceBulk(pageRange(1, c.pages))
		over, err := r.Resize(c.to)
		if err != nil {
			t.Fatal(err)
		}
		kept := min(in, c.to)
		if r.Len() != kept || r.Size() != c.to {
			t.Errorf("%+v: Len %d and Size %d after the resize, want %d and %d", c, r.Len(), r.Size(), kept, c.to)
		}
		more := r.ProduceBulk(pageRange(5001, c.to-kept))
		got := append(takeAll(r), over...)
		want := append(pageRange(1, kept), pageRange(5001, more)...)
		want = append(want, pageRange(1+pagepool.Page(kept), in-kept)...)
		if more != c.to-kept || !slices.Equal(got, want) {
			t.Errorf("%+v: got %v, want %v", c, got, want)
		}
	}
}

func TestPtrRingResizeRefusesImpossibleSizes(t *testing.T) {
	r := newRing(t, 4)
	for _, size := range []int{0, -1, 1 << 40} {
		if _, err := r.Resize(size); err == nil {
			t.Errorf("size %d was taken", size)
		}
		if _, err := pagepool.NewPtrRing(size); err == nil {
			t.Errorf("a new ring of size %d was made", size)
		}
	}
	if r.Size() != 4 {
		t.Errorf("size is %d after refused resizes", r.Size())
	}
}

func TestPtrRingCleanupHandsBackAllAndCloses(t *testing.T) {
	r := newRing(t, 40)
	r.ProduceBulk(pageRange(1, 30))
	r.ConsumeBatch(make([]pagepool.Page, 25))
	r.ProduceBulk(pageRange(31, 20))
	if got := r.Cleanup(); !slices.Equal(got, pageRange(26, 25)) {
		t.Errorf("cleanup handed back %v", got)
	}
	if got := r.Cleanup(); len(got) != 0 {
		t.Errorf("the second cleanup handed back %v", got)
	}
	if !r.Full() || !r.Empty() || r.Len() != 0 || r.Size() != 0 {
		t.Error("a closed ring is not full and empty")
	}
	if r.Produce(1) || r.ProduceBulk(pageRange(1, 3)) != 0 || r.Consume() != 0 || r.ConsumeBatch(make([]pagepool.Page, 3)) != 0 {
		t.Error("a closed ring took or gave a page")
	}
	if _, err := r.Resize(8); err == nil {
		t.Error("a closed ring was resized")
	}
}

func TestPtrRingZeroValueIsFullAndEmpty(t *testing.T) {
	var r pagepool.PtrRing
	if !r.Full() || !r.Empty() || r.Produce(1) || r.ProduceBulk(pageRange(1, 2)) != 0 || r.Consume() != 0 || r.Len() != 0 {
		t.Error("the zero ring is not full and empty")
	}
	if _, err := r.Resize(2); err != nil || !r.Produce(1) {
		t.Errorf("the zero ring cannot be made usable: %v", err)
	}
}

func TestPtrRingTakesPagesAcross32Bits(t *testing.T) {
	r := newRing(t, 33)
	pages := pageRange(1<<32-10, 20)
	if n := r.ProduceBulk(pages); n != 20 {
		t.Fatalf("%d pages went in", n)
	}
	if got := takeAll(r); !slices.Equal(got, pages) {
		t.Errorf("got %x, want %x", got, pages)
	}
}
