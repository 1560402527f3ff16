// SPDX-License-Identifier: Apache-2.0

package napi

import "sync/atomic"

// inbox takes scheduled instances from any goroutine and hands them to the loop in
// the order they came. It is a stack linked through the instances. Since the loop
// takes all of it at once, a link it has read cannot be of another time (no ABA).
//
// Invariant: an instance is in at most one of inbox and list, and once only, since
// only the winner of SCHED puts it there.
type inbox struct {
	head atomic.Pointer[Napi]
}

// push adds an instance whose SCHED the caller has set.
func (b *inbox) push(n *Napi) {
	for {
		head := b.head.Load()
		n.next = head
		// Ordering: publishes next and source of n; pairs with the swap in takeAll.
		// It also comes before the look at Loop.sleeping (see Loop.enqueue).
		if b.head.CompareAndSwap(head, n) {
			return
		}
	}
}

func (b *inbox) empty() bool { return b.head.Load() == nil }

// takeAll empties the inbox and returns its instances linked by next, oldest first.
func (b *inbox) takeAll() (oldest *Napi) {
	if b.empty() {
		return nil // without a swap, since the loop asks far more often than anyone pushes
	}
	// Ordering: pairs with push.
	for n := b.head.Swap(nil); n != nil; {
		next := n.next
		n.next = oldest
		oldest, n = n, next
	}
	return oldest
}
