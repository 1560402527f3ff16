// SPDX-License-Identifier: Apache-2.0

package bulk_test

import (
	"context"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/xskfwd/xskfwd/bulk"
	"github.com/xskfwd/xskfwd/pagepool"
)

// A poll allocates nothing, the FrameBulk included: it does not escape.
func TestFrameBulkAllocatesNothingInAPoll(t *testing.T) {
	for _, rule := range []bulk.Rule{bulk.Partition, bulk.Change} {
		for _, size := range []int{1, 16} {
			r := newRig(t, 256, worker, worker+1, worker+2)
			c := newCycle(t, r, sequence(pollPages, 1, 2, 3, 3, 2))
			if n := testing.AllocsPerRun(100, func() { c.take(); c.poll(size, rule) }); n != 0 {
				t.Errorf("rule %d, size %d: %v allocations in a poll, want 0", rule, size, n)
			}
		}
	}
}

func TestCompilerKeepsTheFrameBulkOnTheStack(t *testing.T) {
	out, err := exec.Command("go", "build", "-gcflags=-m=1", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "frame_bulk.go") && (strings.Contains(line, "leaking param: b\n") || strings.Contains(line, "moved to heap")) {
			t.Errorf("the compiler says: %s", line)
		}
	}
}

// Workers return each other's pages, while memories come and go. Every page comes home.
func TestFrameBulkOfSeveralWorkersReturnEachOthersPages(t *testing.T) {
	const workers, rounds, each = 3, 400, 48
	r := newRig(t, 512, 0, 1, 2)
	stats := make([]bulk.Stats, workers)
	links := make([]chan []pagepool.Page, workers)
	for w := range links {
		links[w] = make(chan []pagepool.Page, rounds)
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			pool := r.pools[w+1]
			for range rounds {
				pages := make([]pagepool.Page, each)
				links[(w+1)%workers] <- pages[:pool.AllocBulk(pages)]
				in := <-links[w]
				own := make([]pagepool.Page, 5)
				own = own[:pool.AllocBulk(own)]

				var b bulk.FrameBulk
				b.Init(r.table, w, bulk.QueueSize, bulk.Rule(w%2), &stats[w])
				for i, p := range in {
					b.Return(p, memOf(p))
					if i < len(own) {
						b.Return(own[i], memOf(own[i]))
					}
				}
				for _, p := range own[min(len(in), len(own)):] {
					b.Return(p, memOf(p))
				}
				b.Flush()
			}
		})
	}
	wg.Go(func() {
		mem := bulk.Mem{Return: func(pagepool.Page) {}}
		for range rounds {
			if err := r.table.Register(9, mem); err != nil {
				t.Error(err)
			}
			r.table.Unregister(9)
		}
	})
	wg.Wait()
	for w := range workers {
		checkIdentities(t, &stats[w])
		if stats[w].Unknown != 0 {
			t.Errorf("worker %d could not return %d pages", w, stats[w].Unknown)
		}
		if err := r.pools[w+1].Destroy(context.Background()); err != nil {
			t.Error(err)
		}
	}
}
