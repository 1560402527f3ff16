// SPDX-License-Identifier: Apache-2.0

package xsk_test

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/asavie/xdp"

	"github.com/xskfwd/xskfwd/internal/xsk"
)

// firstIndices are where ring tests begin: at 0, and where 32 bits soon wrap.
var firstIndices = []uint32{0, 1, 0x7ffffff0, 0xfffffff0, 0xffffffff}

// testRing is both ends of a ring over ordinary memory.
type testRing struct {
	words struct{ producer, consumer, flags uint32 }
	slots []uint64
	prod  *xsk.FillRing
	cons  *xsk.CompletionRing
}

func newTestRing(t testing.TB, first uint32, entries int) *testRing {
	t.Helper()
	r := &testRing{slots: make([]uint64, entries)}
	r.words.producer, r.words.consumer = first, first
	shared := xsk.Indices{Producer: &r.words.producer, Consumer: &r.words.consumer, Flags: &r.words.flags}
	var err error
	if r.prod, err = xsk.NewProducer(shared, r.slots); err != nil {
		t.Fatal(err)
	}
	if r.cons, err = xsk.NewConsumer(shared, r.slots); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRingAgreesWithQueue does random batches on both ends and on a slice.
func TestRingAgreesWithQueue(t *testing.T) {
	for _, first := range firstIndices {
		for _, entries := range []int{1, 2, 4, 64} {
			rng := rand.New(rand.NewPCG(uint64(first), uint64(entries)))
			script := make([]byte, 4000)
			for i := range script {
				script[i] = byte(rng.Uint32())
			}
			runRingScript(t, first, entries, script)
		}
	}
}

func FuzzRingAgreesWithQueue(f *testing.F) {
	f.Add(uint32(0xfffffffe), uint8(2), []byte{0x05, 0x83, 0x07, 0x8f})
	f.Add(uint32(0), uint8(0), []byte{0x01, 0x81, 0x01, 0x01, 0x81, 0x81})
	f.Fuzz(func(t *testing.T, first uint32, log2 uint8, script []byte) {
		runRingScript(t, first, 1<<(log2%8), script)
	})
}

// runRingScript reads each byte as an operation: the top bit says which end, bit
// 6 whether all of what was granted is committed or only half, the rest how many
// entries are asked for.
func runRingScript(t *testing.T, first uint32, entries int, script []byte) {
	t.Helper()
	r := newTestRing(t, first, entries)
	var queue []uint64 // the twin
	next := uint64(1)
	for step, op := range script {
		want := uint32(op & 0x3f)
		half := op&0x40 != 0
		if op&0x80 == 0 {
			idx, got := r.prod.Reserve(want)
			if expect := min(want, uint32(entries-len(queue))); got != expect {
				t.Fatalf("step %d: reserve %d with %d of %d filled: got %d, want %d", step, want, len(queue), entries, got, expect)
			}
			if half {
				got /= 2
			}
			for i := range got {
				r.prod.Set(idx+i, next)
				queue = append(queue, next)
				next++
			}
			r.prod.Submit(got)
		} else {
			idx, got := r.cons.Peek(want)
			if expect := min(want, uint32(len(queue))); got != expect {
				t.Fatalf("step %d: peek %d with %d filled: got %d, want %d", step, want, len(queue), got, expect)
			}
			for i := range got {
				if e := r.cons.At(idx + i); e != queue[i] {
					t.Fatalf("step %d: entry %d: got %d, want %d", step, i, e, queue[i])
				}
			}
			if half {
				got /= 2
			}
			r.cons.Release(got)
			queue = queue[got:]
		}
		if got := r.prod.Len(); got != uint32(len(queue)) {
			t.Fatalf("step %d: producer's Len: got %d, want %d", step, got, len(queue))
		}
		if got := r.cons.Len(); got != uint32(len(queue)) {
			t.Fatalf("step %d: consumer's Len: got %d, want %d", step, got, len(queue))
		}
		if got, want := r.prod.Free(), uint32(entries-len(queue)); got != want {
			t.Fatalf("step %d: Free: got %d, want %d", step, got, want)
		}
	}
}

// TestRingReserveAloneChangesNothing: entries count from Submit on, and until
// then the kernel sees none.
func TestRingReserveAloneChangesNothing(t *testing.T) {
	r := newTestRing(t, 0xfffffffe, 4)
	idx, got := r.prod.Reserve(3)
	r.prod.Set(idx, 7)
	if again, _ := r.prod.Reserve(3); again != idx || got != 3 {
		t.Errorf("second Reserve: got index %d, want %d", again, idx)
	}
	if _, n := r.cons.Peek(4); n != 0 {
		t.Errorf("entries visible before Submit: got %d, want 0", n)
	}
	r.prod.Submit(1)
	if idx, n := r.cons.Peek(4); n != 1 || r.cons.At(idx) != 7 {
		t.Errorf("after Submit(1): got %d entries", n)
	}
	if _, n := r.cons.Peek(4); n != 1 {
		t.Errorf("after Peek alone: got %d entries, want the same 1", n)
	}
}

// TestRingNeedWakeupFollowsFlag reads the bit the kernel sets, whatever else it
// may put in the word.
func TestRingNeedWakeupFollowsFlag(t *testing.T) {
	r := newTestRing(t, 0, 4)
	for _, c := range []struct {
		word uint32
		want bool
	}{{0, false}, {1, true}, {2, false}, {3, true}} {
		atomic.StoreUint32(&r.words.flags, c.word)
		if got := r.prod.NeedWakeup(); got != c.want {
			t.Errorf("flags %#x: got %v, want %v", c.word, got, c.want)
		}
	}
}

// TestRingCarriesEntriesBetweenGoroutines has each end in a goroutine of its
// own; the race detector sees to it that entries are read after the index that
// covers them.
func TestRingCarriesEntriesBetweenGoroutines(t *testing.T) {
	const total = 20_000
	for _, first := range firstIndices {
		r := newTestRing(t, first, 64)
		go func() {
			for sent := uint64(0); sent < total; {
				idx, got := r.prod.Reserve(uint32(sent%17) + 1)
				if got = min(got, uint32(total-sent)); got == 0 {
					runtime.Gosched()
				}
				for i := range got {
					r.prod.Set(idx+i, sent)
					sent++
				}
				r.prod.Submit(got)
			}
		}()
		for seen := uint64(0); seen < total; {
			idx, got := r.cons.Peek(uint32(seen%13) + 1)
			for i := range got {
				if e := r.cons.At(idx + i); e != seen {
					t.Fatalf("from %#x: got entry %d, want %d", first, e, seen)
				}
				seen++
			}
			r.cons.Release(got)
			if got == 0 {
				runtime.Gosched()
			}
		}
	}
}

// TestRingLenIsSaneForThirdParties reads Len while both ends run.
func TestRingLenIsSaneForThirdParties(t *testing.T) {
	const total = 50_000
	r := newTestRing(t, 0xffffff00, 16)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; i < total; {
			_, got := r.prod.Reserve(3)
			r.prod.Submit(got)
			_, got = r.cons.Peek(3)
			r.cons.Release(got)
			i += int(got)
		}
	}()
	for {
		if n := r.prod.Len(); n > 16 {
			t.Fatalf("Len: got %d of 16", n)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

func TestValidateRingSizeNamesSettingAndValue(t *testing.T) {
	for _, n := range []uint32{1, 2, 64, 2048, 1 << 22} {
		if err := xsk.ValidateRingSize("rx ring size", n); err != nil {
			t.Errorf("%d: %v", n, err)
		}
	}
	for _, n := range []uint32{0, 3, 100, 511, 1 << 23, 1 << 31, 0xffffffff} {
		err := xsk.ValidateRingSize("rx ring size", n)
		if err == nil {
			t.Errorf("%d: accepted", n)
			continue
		}
		mustMention(t, err, "rx ring size", "power of two", "4194304")
	}
}

func TestRingOperationsDoNotAllocate(t *testing.T) {
	r := newTestRing(t, 0, 64)
	if n := testing.AllocsPerRun(100, func() { ringRound(r) }); n != 0 {
		t.Errorf("allocations: got %v, want 0", n)
	}
}

func ringRound(r *testRing) {
	idx, got := r.prod.Reserve(32)
	for i := range got {
		r.prod.Set(idx+i, uint64(i))
	}
	r.prod.Submit(got)
	idx, got = r.cons.Peek(32)
	for i := range got {
		sink += r.cons.At(idx + i)
	}
	r.cons.Release(got)
}

var (
	sink uint64

	sinkBool bool
)

// BenchmarkRing measures each operation by itself; per op is per call, or per
// entry where the name says so.
func BenchmarkRing(b *testing.B) {
	bench := func(name string, f func(*testRing, int)) {
		b.Run(name, func(b *testing.B) {
			r := newTestRing(b, 0, 2048)
			b.ReportAllocs()
			b.ResetTimer()
			f(r, b.N)
		})
	}
	bench("reserve", func(r *testRing, n int) {
		for range n {
			_, got := r.prod.Reserve(32)
			sink += uint64(got)
		}
	})
	bench("set-entry", func(r *testRing, n int) {
		for i := range n {
			r.prod.Set(uint32(i), uint64(i))
		}
	})
	bench("submit", func(r *testRing, n int) {
		for range n {
			r.prod.Submit(0)
		}
	})
	bench("peek-empty", func(r *testRing, n int) {
		for range n {
			_, got := r.cons.Peek(32)
			sink += uint64(got)
		}
	})
	bench("at-entry", func(r *testRing, n int) {
		for i := range n {
			sink += r.cons.At(uint32(i))
		}
	})
	bench("release", func(r *testRing, n int) {
		for range n {
			r.cons.Release(0)
		}
	})
	bench("need-wakeup", func(r *testRing, n int) {
		for range n {
			sinkBool = r.prod.NeedWakeup()
		}
	})
	bench("len", func(r *testRing, n int) {
		for range n {
			sink += uint64(r.prod.Len())
		}
	})
	bench("entry-in-batches-of-32", func(r *testRing, n int) {
		for i := 0; i < n; i += 32 {
			ringRound(r)
		}
	})
}

// BenchmarkTxRing is the same for descriptors.
func BenchmarkTxRing(b *testing.B) {
	var producer, consumer, flags uint32
	r, err := xsk.NewProducer(xsk.Indices{Producer: &producer, Consumer: &consumer, Flags: &flags}, make([]xdp.Desc, 2048))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.Set(uint32(i), xdp.Desc{Addr: uint64(i), Len: 60})
	}

}
