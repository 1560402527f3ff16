// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"
	"testing"
)

func TestBaselineIgnoresALateReadingOfAnOldSocket(t *testing.T) {
	var b Baseline[XSKStatistics]
	old := b.Begin()
	old.Observe(XSKStatistics{RxDropped: 100})
	young := b.Begin()
	young.Observe(XSKStatistics{RxDropped: 5})
	old.Observe(XSKStatistics{RxDropped: 90}) // read before the one above, arrives after it
	if got := b.Total().RxDropped; got != 105 {
		t.Errorf("total = %d, want 105", got)
	}
	old.Observe(XSKStatistics{RxDropped: 102}) // what it counted while it was closing
	if got := b.Total().RxDropped; got != 107 {
		t.Errorf("total = %d, want 107", got)
	}
}

func TestBaselineCountsOnceWhateverTheNumberOfReaders(t *testing.T) {
	var b Baseline[XSKStatistics]
	life := b.Begin()
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			var last uint64
			for n := range uint64(1000) {
				life.Observe(XSKStatistics{RxDropped: n, TxRingEmptyDescs: 2 * n})
				if got := b.Total().RxDropped; got < last {
					t.Errorf("total went back from %d to %d", last, got)
				} else {
					last = got
				}
			}
		})
	}
	readers.Wait()
	if got, want := b.Total(), (XSKStatistics{RxDropped: 999, TxRingEmptyDescs: 1998}); got != want {
		t.Errorf("total = %+v, want %+v", got, want)
	}
}
