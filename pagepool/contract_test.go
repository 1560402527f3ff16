// SPDX-License-Identifier: Apache-2.0

package pagepool

import (
	"os/exec"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
)

// The last two holders may both see two and drop at the same time: the second to drop is the last, and the page counts 1.
func TestRefsTwoHoldersThatDropAtOnceLeaveOne(t *testing.T) {
	var c atomic.Int32
	c.Store(2)
	if dropHolder(&c) {
		t.Error("the first of two was the last")
	}
	if !dropHolder(&c) || c.Load() != 1 {
		t.Errorf("the second of two was not the last, or the page counts %d", c.Load())
	}
}

// zero fails the test if f allocates.
func zero(t *testing.T, name string, f func()) {
	t.Helper()
	if n := testing.AllocsPerRun(200, f); n != 0 {
		t.Errorf("%s: %v allocations in a run, want 0", name, n)
	}
}

func TestPagePoolHotPathsDoNotAllocate(t *testing.T) {
	refs, err := NewRefs(1, 1, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	for name, params := range map[string]Params{
		"plain":     {},
		"one slot":  {RingSize: 1},
		"with refs": {Refs: refs},
	} {
		params.Name, params.Provider = "zero", new(counter)
		p, err := New(params)
		if err != nil {
			t.Fatal(err)
		}
		zero(t, name+": Alloc and Put", func() {
			p.Put(p.Alloc(), true)
			p.Put(p.Alloc(), false)
		})
		zero(t, name+": AllocBulk and PutBulk", func() {
			var pages [100]Page // on the stack: PutBulk does not keep it
			p.AllocBulk(pages[:])
			p.PutBulk(pages[:30], true)
			p.PutBulk(pages[30:], false)
		})
		zero(t, name+": Flush", p.Flush)
		zero(t, name+": Publish, Stats, Inflight, OwnerCounts", func() {
			p.Publish()
			p.Stats()
			p.Inflight()
			p.OwnerCounts()
		})
	}
}

func TestPtrRingHotPathsDoNotAllocate(t *testing.T) {
	r, err := NewPtrRing(64)
	if err != nil {
		t.Fatal(err)
	}
	zero(t, "Produce and Consume", func() { r.Produce(1); r.Consume() })
	zero(t, "ProduceBulk and ConsumeBatch", func() {
		pages := [16]Page{1, 2, 3, 4}
		r.ProduceBulk(pages[:4])
		r.ConsumeBatch(pages[:])
	})
	zero(t, "Full, Empty, Len, Counts", func() { r.Full(); r.Empty(); r.Len(); r.Counts() })
}

// What different goroutines write lies at least a cacheLine apart, wherever the struct begins.
func TestWritersHaveTheirOwnCacheLines(t *testing.T) {
	pad := reflect.TypeFor[linePad]()
	for _, c := range []struct {
		of     reflect.Type
		groups []string // the first field of each group after the first
	}{
		{reflect.TypeFor[PtrRing](), []string{"producerLock", "consumerLock"}},
		{reflect.TypeFor[PagePool](), []string{"cacheLen", "published", "release", "ring"}},
	} {
		for _, name := range c.groups {
			f, ok := c.of.FieldByName(name)
			if !ok || c.of.Field(f.Index[0]-1).Type != pad {
				t.Errorf("%v: no pad before %s", c.of, name)
			}
		}
	}
	ring := reflect.TypeFor[PtrRing]()
	if ring.Field(ring.NumField()-1).Type != pad || pad.Size() < cacheLine {
		t.Error("PtrRing: no pad at the end")
	}
}

// The compiler's own account: what must be inlined is, and what callers keep on their stacks stays there.
func TestCompilerInlinesAllocAndKeepsCallersPagesOnTheStack(t *testing.T) {
	out, err := exec.Command("go", "build", "-gcflags=-m=1", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, want := range []string{
		"can inline (*PagePool).Alloc\n",
		"can inline freeSlots\n",
		"can inline copyPages\n",
		"can inline (*PtrRing).discard\n",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the compiler does not say: %s", want)
		}
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "moved to heap") || strings.Contains(line, "leaking param: ps\n") {
			t.Errorf("the compiler says: %s", line)
		}
	}
}
