// SPDX-License-Identifier: Apache-2.0

package xsktest

import "github.com/xskfwd/xskfwd/internal/xsk"

// Places are the addresses that lie on each ring, oldest first, and those that
// the kernel's side has in its hands. Each is as it was put there.
type Places struct {
	Fill, Rx, Tx, Completion []uint64
	InFlight                 []uint64 // sent, not completed
}

// Places looks at all rings without moving anything. Nobody may use the user's
// ends meanwhile.
func (k *Kernel) Places() (p Places) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p.Fill = waiting(k.fill)
	p.Completion = waiting(k.Socket.Completion)
	rx, n := k.Socket.Rx.Peek(k.Socket.Rx.Entries())
	for i := range n {
		p.Rx = append(p.Rx, k.Socket.Rx.At(rx+i).Addr)
	}
	tx, n := k.tx.Peek(k.tx.Entries())
	for i := range n {
		p.Tx = append(p.Tx, k.tx.At(tx+i).Addr)
	}
	p.InFlight = append(p.InFlight, k.inflight...)
	return p
}

// waiting are the addresses a consumer has not taken yet.
func waiting(r *xsk.CompletionRing) (addrs []uint64) {
	first, n := r.Peek(r.Entries())
	for i := range n {
		addrs = append(addrs, r.At(first+i))
	}
	return addrs
}
