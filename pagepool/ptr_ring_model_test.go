// SPDX-License-Identifier: Apache-2.0

package pagepool_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xskfwd/xskfwd/pagepool"
)

// ringTwin is what a PtrRing does, on a slice: a queue, and the count of slots that a consumer holds back.
type ringTwin struct {
	size   int
	batch  int
	head   int // where in the ring the next page is taken; says where a batch ends early
	held   int
	queue  []pagepool.Page
	closed bool
}

func newRingTwin(size int) *ringTwin {
	t := new(ringTwin)
	t.resize(size)
	return t
}

func (t *ringTwin) produce(ps []pagepool.Page) int {
	n := min(len(ps), t.size-len(t.queue)-t.held)
	t.queue = append(t.queue, ps[:n]...)
	return n
}

func (t *ringTwin) consume(n int) []pagepool.Page {
	got := slices.Clone(t.queue[:min(n, len(t.queue))])
	t.queue = t.queue[len(got):]
	for left := len(got); left > 0; {
		run := min(left, t.size-t.head)
		t.head += run
		t.held += run
		left -= run
		if t.held >= t.batch || t.head == t.size {
			t.held = 0
			t.head %= t.size
		}
	}
	return got
}

func (t *ringTwin) resize(size int) []pagepool.Page {
	over := slices.Clone(t.queue[min(size, len(t.queue)):])
	t.queue = t.queue[:len(t.queue)-len(over)]
	t.size, t.head, t.held, t.batch = size, 0, 0, 16
	if size < 32 {
		t.batch = 1
	}
	return over
}

func (t *ringTwin) cleanup() []pagepool.Page {
	all := t.queue
	t.queue, t.size, t.head, t.held, t.closed = nil, 0, 0, 0, true
	return all
}

// runRingOps plays ops, two bytes each, on a ring and its twin, and reports the first difference.
func runRingOps(t *testing.T, size int, ops []byte) {
	ring, twin := newRing(t, size), newRingTwin(size)
	next := pagepool.Page(1<<32 - 50)
	for ; len(ops) >= 2; ops = ops[2:] {
		op, n := ops[0]%16, int(ops[1])
		switch {
		case op < 3:
			got, want := ring.Produce(next), twin.produce([]pagepool.Page{next}) == 1
			if got != want {
				t.Fatalf("Produce is %v, want %v", got, want)
			}
			next++
		case op < 7:
			ps := pageRange(next, n)
			if got, want := ring.ProduceBulk(ps), twin.produce(ps); got != want {
				t.Fatalf("ProduceBulk(%d) is %d, want %d", n, got, want)
			}
			next += pagepool.Page(n)
		case op < 9:
			want := append(twin.consume(1), 0)[0]
			if got := ring.Consume(); got != want {
				t.Fatalf("Consume is %d, want %d", got, want)
			}
		case op < 13:
			dst := make([]pagepool.Page, n)
			dst = dst[:ring.ConsumeBatch(dst)]
			if want := twin.consume(n); !slices.Equal(dst, want) {
				t.Fatalf("ConsumeBatch(%d) is %v, want %v", n, dst, want)
			}
		case op < 15:
			got, err := ring.Resize(n + 1)
			if (err != nil) != twin.closed {
				t.Fatalf("Resize(%d) gives error %v, closed is %v", n+1, err, twin.closed)
			}
			if err != nil {
				continue
			}
			if want := twin.resize(n + 1); !slices.Equal(got, want) {
				t.Fatalf("Resize(%d) hands back %v, want %v", n+1, got, want)
			}
		case n == 255:
			if got, want := ring.Cleanup(), twin.cleanup(); !slices.Equal(got, want) {
				t.Fatalf("Cleanup hands back %v, want %v", got, want)
			}
		}
		checkRing(t, ring, twin)
	}
}

func checkRing(t *testing.T, ring *pagepool.PtrRing, twin *ringTwin) {
	t.Helper()
	if got, want := ring.Len(), len(twin.queue); got != want {
		t.Fatalf("Len is %d, want %d", got, want)
	}
	if got, want := ring.Size(), twin.size; got != want {
		t.Fatalf("Size is %d, want %d", got, want)
	}
	if got, want := ring.Full(), len(twin.queue)+twin.held == twin.size; got != want {
		t.Fatalf("Full is %v, want %v", got, want)
	}
	if got, want := ring.Empty(), len(twin.queue) == 0; got != want {
		t.Fatalf("Empty is %v, want %v", got, want)
	}
}

func TestPtrRingDoesWhatItsTwinDoes(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		ops := make([]byte, 1000)
		for i := range ops {
			ops[i] = byte(rng.Uint32())
		}
		// A third of the runs never closes the ring, a third never resizes it.
		for i := 0; i < len(ops); i += 2 {
			if op := ops[i] % 16; op == 15 && seed%3 > 0 || op > 12 && seed%3 > 1 {
				ops[i] = 3
			}
		}
		runRingOps(t, int(seed)*3+1, ops)
	}
}

func FuzzPtrRing(f *testing.F) {
	f.Fuzz(func(t *testing.T, size uint16, ops []byte) {
		runRingOps(t, int(size)%300+1, ops)
	})
}
