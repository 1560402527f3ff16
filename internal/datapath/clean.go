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
	// Ordering: pairs with the count in submit; what the kernel has completed was
	// marked and counted before the kernel saw it.
	q.tx.out.handed.Load()
	for i := range n {
		addr := ring.At(idx + i)
		page, mem, ok := q.umem.Resolve(addr)
		if !ok || !q.tx.out.unmark(addr) {
			// An address that was never a frame, or not one that is being sent:
			// newer kernels complete invalid descriptors by the address that
			// was in them. If it is a page, it is somewhere else.
			q.c.BadCompletions++
			continue
		}
		done.Return(page, mem)
	}
	ring.Release(n)
	q.c.Completed += uint64(n)
	q.tx.timer.Reaped(int(n))
}
