// SPDX-License-Identifier: Apache-2.0

package bulk_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/xskfwd/xskfwd/bulk"
	"github.com/xskfwd/xskfwd/pagepool"
)

// pollPages is the number of completions in one poll of these benchmarks: a NAPI weight.
const pollPages = 64

// cycle is one poll: the owners take pollPages pages in the order of ids, and the completion loop of worker returns them.
type cycle struct {
	*rig
	ids   []pagepool.MemID
	count []int // pages of each pool in ids
	taken [][]pagepool.Page
	order []pagepool.Page
}

// newCycle prepares polls whose completions are of the memories in ids.
func newCycle(tb testing.TB, r *rig, ids []pagepool.MemID) *cycle {
	c := &cycle{rig: r, ids: ids, count: make([]int, len(r.pools)), order: make([]pagepool.Page, len(ids))}
	for _, id := range ids {
		c.count[id]++
	}
	for id, n := range c.count {
		c.taken = append(c.taken, make([]pagepool.Page, n))
		if n > 0 && r.pools[id].AllocBulk(c.taken[id]) != n {
			tb.Fatalf("pool %d has too few pages", id)
		}
		if n > 0 {
			r.pools[id].PutBulk(c.taken[id], false)
		}
	}
	return c
}

// take allocates the pages of one poll. It is not part of what is measured.
func (c *cycle) take() {
	for id, pages := range c.taken {
		if len(pages) > 0 {
			c.pools[id].AllocBulk(pages)
		}
	}
	next := [8]int{}
	for i, id := range c.ids {
		c.order[i] = c.taken[id][next[id]]
		next[id]++
	}
}

// poll runs the completion loop.
func (c *cycle) poll(size int, rule bulk.Rule) {
	var b bulk.FrameBulk
	b.Init(c.table, worker, size, rule, &c.stats)
	for i, p := range c.order {
		b.Return(p, c.ids[i])
	}
	b.Flush()
}

// variant is one of several ways to do the same polls.
type variant struct {
	name string
	size int
	rule bulk.Rule
}

// compare runs the polls of all variants in alternating rounds and reports the median time of a page for each, and the
// median of the ratios of the first to the others. Rounds are short, so that most of them are free of what else the
// machine does.
func compare(b *testing.B, c *cycle, variants ...variant) {
	const polls = 8
	times := make([][]float64, len(variants))
	ratios := make([][]float64, len(variants))
	for b.Loop() {
		for v, way := range variants {
			var elapsed time.Duration
			for range polls {
				c.take()
				start := time.Now()
				c.poll(way.size, way.rule)
				elapsed += time.Since(start)
			}
			times[v] = append(times[v], float64(elapsed.Nanoseconds())/polls/float64(len(c.ids)))
			ratios[v] = append(ratios[v], times[0][len(times[0])-1]/times[v][len(times[v])-1])
		}
	}
	b.ReportMetric(0, "ns/op")
	for v, way := range variants {
		b.ReportMetric(median(times[v]), way.name+"-ns/page")
		if v > 0 {
			b.ReportMetric(median(ratios[v]), way.name+"-ratio")
		}
	}
}

func median(xs []float64) float64 {
	slices.Sort(xs)
	return xs[len(xs)/2]
}

// BenchmarkBulkSize returns pages of another owner's pool one by one and in bulks. Goal: 16 at least twice as fast.
func BenchmarkBulkSize(b *testing.B) {
	for _, c := range []struct {
		name  string
		owner int
	}{{"foreign", worker + 1}, {"direct", worker}} {
		b.Run(c.name, func(b *testing.B) {
			r := newRig(b, 1024, c.owner)
			compare(b, newCycle(b, r, sequence(pollPages, 1)),
				variant{"off", 1, bulk.Partition}, variant{"bulk4", 4, bulk.Partition}, variant{"bulk16", 16, bulk.Partition})
		})
	}
}

// BenchmarkFlushRule returns pages of several pools of other owners that interleave in different ways.
func BenchmarkFlushRule(b *testing.B) {
	foreign := []int{worker + 1, worker + 2, worker + 3, worker + 4}
	direct := []int{worker, worker, worker, worker}
	mixed := []int{worker, worker + 1, worker, worker + 1}
	for _, c := range []struct {
		name   string
		owners []int
		ids    []pagepool.MemID
	}{
		{"one-pool", foreign, sequence(pollPages, 1)},
		{"two-pools/alternating", foreign, sequence(pollPages, 1, 2)},
		{"two-pools/runs-of-4", foreign, sequence(pollPages, 1, 1, 1, 1, 2, 2, 2, 2)},
		{"two-pools/runs-of-16", foreign, runs(pollPages, 16, 1, 2)},
		{"two-pools/random", foreign, random(pollPages, 2)},
		{"four-pools/alternating", foreign, sequence(pollPages, 1, 2, 3, 4)},
		{"four-pools/random", foreign, random(pollPages, 4)},
		{"two-direct-pools/alternating", direct, sequence(pollPages, 1, 2)},
		{"four-direct-pools/random", direct, random(pollPages, 4)},
		{"direct-and-foreign/alternating", mixed, sequence(pollPages, 1, 2)},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := newRig(b, 1024, c.owners...)
			compare(b, newCycle(b, r, c.ids), variant{"change", 16, bulk.Change}, variant{"partition", 16, bulk.Partition})
		})
	}
}

// runs repeats each id n times before the next.
func runs(total, n int, ids ...pagepool.MemID) []pagepool.MemID {
	seq := make([]pagepool.MemID, total)
	for i := range seq {
		seq[i] = ids[i/n%len(ids)]
	}
	return seq
}

// random draws from the memories 1 to n by a fixed linear congruence, so that each run of a benchmark is alike.
func random(total, n int) []pagepool.MemID {
	seq := make([]pagepool.MemID, total)
	x := uint32(12345)
	for i := range seq {
		x = x*1664525 + 1013904223
		seq[i] = pagepool.MemID(x>>16)%pagepool.MemID(n) + 1
	}
	return seq
}

func BenchmarkFrameBulkReturn(b *testing.B) {
	for _, n := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("poll-of-%d", n), func(b *testing.B) {
			r := newRig(b, 1024, worker)
			c := newCycle(b, r, sequence(n, 1))
			b.ReportAllocs()
			for b.Loop() {
				c.take()
				c.poll(bulk.QueueSize, bulk.Partition)
			}
		})
	}
}

func BenchmarkMemTableRegister(b *testing.B) {
	table := bulk.NewMemTable()
	mem := bulk.Mem{Return: func(pagepool.Page) {}}
	b.ReportAllocs()
	for b.Loop() {
		if err := table.Register(100, mem); err != nil {
			b.Fatal(err)
		}
		table.Unregister(100)
	}
}
