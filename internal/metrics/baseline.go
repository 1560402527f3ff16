// SPDX-License-Identifier: Apache-2.0

package metrics

import "sync"

// Baseline keeps kernel statistics over the lives of what is counted. The kernel starts XSK statistics at 0 with each socket, and those of
// an XDP program with each load; a Baseline adds up what each life counted, so that the total never goes back when a port is closed and
// opened again. The zero value is ready.
type Baseline[T statistics] struct {
	mu    sync.Mutex
	total T
}

// statistics are structs of nothing but running counts.
type statistics interface {
	XSKStatistics | XDPStatistics
}

// Life is the part of a Baseline that belongs to one socket, or one loaded program. It is made when that is opened and lives beside it,
// so that a late reading of an old socket is never taken for one of its successor.
type Life[T statistics] struct {
	b    *Baseline[T]
	last T // what this life has added to the total so far; guarded by b.mu
}

// Begin opens the account of a new socket or program, whose counts are at 0.
func (b *Baseline[T]) Begin() *Life[T] {
	return &Life[T]{b: b}
}

// Observe takes a reading into the total. Readings may come from several goroutines and in any order. The last one should be made just
// before the socket is closed, for what is not read by then is lost.
func (l *Life[T]) Observe(now T) {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	total, last := counts(&l.b.total), counts(&l.last)
	for i, n := range counts(&now) {
		if *n > *last[i] { // else the reading is no newer than the last one
			*total[i] += *n - *last[i]
			*last[i] = *n
		}
	}
}

// Total is what all lives counted together, as far as it was observed.
func (b *Baseline[T]) Total() T {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}

// counts are the fields of the statistics, always in the same order.
func counts[T statistics](t *T) []*uint64 {
	switch t := any(t).(type) {
	case *XSKStatistics:
		return []*uint64{&t.RxDropped, &t.RxInvalidDescs, &t.TxInvalidDescs, &t.RxRingFull, &t.RxFillRingEmptyDescs, &t.TxRingEmptyDescs}
	case *XDPStatistics:
		return []*uint64{&t.Redirected, &t.Partner, &t.Passed, &t.Orphaned}
	}
	return nil
}
