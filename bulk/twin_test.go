// SPDX-License-Identifier: Apache-2.0

package bulk_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xskfwd/xskfwd/bulk"
	"github.com/xskfwd/xskfwd/pagepool"
)

// The memories of the twin's world: 1 to 3 are pools, 4 has a function, 5 is not known.
const (
	lastPool   = 3
	functionID = 4
	unknownID  = 5
)

// twin is what a FrameBulk does, without lanes: a queue of pages which is parted by a map.
type twin struct {
	size     int
	rule     bulk.Rule
	queue    []pagepool.Page
	lengths  map[int]int
	flushes  [3]uint64
	returned map[pagepool.MemID]int
}

func (w *twin) give(p pagepool.Page, id pagepool.MemID) {
	if id > lastPool {
		w.returned[id]++
		return
	}
	if w.rule == bulk.Change && len(w.queue) > 0 && memOf(w.queue[0]) != id {
		w.flush(bulk.PoolChange)
	}
	if w.queue = append(w.queue, p); len(w.queue) == w.size {
		w.flush(bulk.Full)
	}
}

func (w *twin) flush(why bulk.Reason) {
	parts := make(map[pagepool.MemID]int)
	for _, p := range w.queue {
		parts[memOf(p)]++
	}
	for id, n := range parts {
		w.lengths[n]++
		w.flushes[why]++
		w.returned[id] += n
	}
	w.queue = nil
}

// runBulk returns one page for each byte of order to a FrameBulk and to its twin, and compares them.
func runBulk(t *testing.T, size int, rule bulk.Rule, order []byte) {
	r := newRig(t, 4096, worker, worker+1, worker+2)
	var gone []pagepool.Page
	if err := r.table.Register(functionID, bulk.Mem{Return: func(p pagepool.Page) { gone = append(gone, p) }}); err != nil {
		t.Fatal(err)
	}
	w := &twin{size: min(max(size, 1), bulk.QueueSize), rule: rule, lengths: map[int]int{}, returned: map[pagepool.MemID]int{}}
	var b bulk.FrameBulk
	b.Init(r.table, worker, size, rule, &r.stats)
	out := make(map[pagepool.Page]bool)
	for _, x := range order {
		id := pagepool.MemID(x)%unknownID + 1
		page := pagepool.Page(uint64(id)<<32 + 1)
		if id <= lastPool {
			if page = r.pools[id].Alloc(); page == 0 {
				break // more pages than a pool has are out
			}
			out[page] = true
		}
		b.Return(page, id)
		w.give(page, id)
		if x > 250 { // the end of one poll, the beginning of the next
			b.Flush()
			w.flush(bulk.EndOfPoll)
			b.Init(r.table, worker, size, rule, &r.stats)
		}
	}
	b.Flush()
	w.flush(bulk.EndOfPoll)
	compareWithTwin(t, r, w, len(gone))
	checkAllHome(t, r, out)
}

func compareWithTwin(t *testing.T, r *rig, w *twin, gone int) {
	t.Helper()
	lengths := make(map[int]int)
	for l, n := range r.stats.Length {
		if n > 0 {
			lengths[l] = int(n)
		}
	}
	if !maps.Equal(lengths, w.lengths) || r.stats.Flushes != w.flushes {
		t.Fatalf("bulks by length %v and reason %v, want %v and %v", lengths, r.stats.Flushes, w.lengths, w.flushes)
	}
	for id := pagepool.MemID(1); id <= lastPool; id++ {
		m := r.stats.ByMem[id]
		if got := int(m.Cached + m.Ring + m.Released + m.Shared); got != w.returned[id] {
			t.Fatalf("%d pages of memory %d were returned, want %d", got, id, w.returned[id])
		}
		if direct := id == 1; !direct && m.Cached > 0 || direct && m.Ring > 0 && m.Cached < pagepool.CacheSize-pagepool.RefillSize {
			t.Fatalf("pages of memory %d went to %+v", id, m)
		}
	}
	if int(r.stats.Immediate) != w.returned[functionID] || gone != w.returned[functionID] || int(r.stats.Unknown) != w.returned[unknownID] {
		t.Fatalf("%d pages at once, %d unknown, want %d and %d", r.stats.Immediate, r.stats.Unknown, w.returned[functionID], w.returned[unknownID])
	}
	checkIdentities(t, &r.stats)
}

// checkAllHome takes all pages out of the pools: each that was out must come once.
func checkAllHome(t *testing.T, r *rig, out map[pagepool.Page]bool) {
	t.Helper()
	for id := pagepool.MemID(1); id <= lastPool; id++ {
		pages := make([]pagepool.Page, 4097)
		if n := r.pools[id].AllocBulk(pages); n != 4096 {
			t.Fatalf("pool %d has %d pages, want 4096", id, n)
		}
		pages = pages[:4096]
		slices.Sort(pages)
		if len(slices.Compact(pages)) != 4096 {
			t.Fatalf("pool %d has a page twice", id)
		}
		for _, p := range pages {
			delete(out, p)
		}
	}
	if len(out) > 0 {
		t.Fatalf("%d pages did not come home", len(out))
	}
}

func TestFrameBulkDoesWhatItsTwinDoes(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		order := make([]byte, 300)
		for i := range order {
			order[i] = byte(rng.Uint32())
			if i > 0 && seed%3 > 0 && rng.Uint32()%8 > 0 {
				order[i] = order[i-1] // runs of one memory
			}
		}
		runBulk(t, int(seed)%18, bulk.Rule(seed%2), order)
	}
}

func FuzzFrameBulk(f *testing.F) {
	f.Fuzz(func(t *testing.T, size uint8, change bool, order []byte) {
		rule := bulk.Partition
		if change {
			rule = bulk.Change
		}
		runBulk(t, int(size)%18, rule, order[:min(len(order), 2000)])
	})
}
