// SPDX-License-Identifier: Apache-2.0

package datapath

import "github.com/xskfwd/xskfwd/bulk"

// clean reads the completion ring of this queue's TX ring to its end and gives
// each page to the bulk queue. It is not charged to the budget. TX stops when
// the completion ring is full, so it is read whole, not up to a limit.
func (q *Queue) clean(done *bulk.FrameBulk) {
	ring := q.sock.Completion
	idx, n := ring.Peek(ring.Entries())
	if n == 0 {
		return
	}
	for i := range n {
		page, mem, ok := q.umem.Resolve(ring.At(idx + i))
		if !ok {
			// An address that was never a frame: newer kernels complete
			// invalid descriptors by the address that was in them.
			q.c.BadCompletions++
			continue
		}
		done.Return(page, mem)
	}
	ring.Release(n)
	q.c.Completed += uint64(n)
	q.tx.timer.Reaped(int(n))
}
