// SPDX-License-Identifier: Apache-2.0

package xsktest

import (
	"bytes"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// send is a kick of the TX ring.
func (k *Kernel) send() unix.Errno {
	k.mu.Lock()
	defer k.mu.Unlock()
	if errno := k.check(); errno != 0 {
		return errno
	}
	if atomic.LoadUint32(k.txFlags) == 0 {
		return 0
	}
	if k.cfg.Zerocopy {
		k.transmit(k.cfg.TxEntries)
		return 0
	}
	return k.transmit(k.cfg.TxSkbBudget)
}

// Transmit sends up to n frames of the TX ring without being kicked, as a
// zero-copy driver does, and returns how many.
func (k *Kernel) Transmit(n int) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.sentCount
	k.transmit(uint32(n))
	return int(k.sentCount - before)
}

// transmit moves frames until the ring is empty or something stops it, and says
// what. The order of the checks is the kernel's: a frame, the budget, a slot of
// the completion ring, the device.
func (k *Kernel) transmit(budget uint32) unix.Errno {
	for {
		idx, got := k.tx.Peek(1)
		if got == 0 {
			k.stats.Tx_ring_empty_descs++
			return 0
		}
		if budget == 0 {
			return unix.EAGAIN
		}
		budget--
		if int(k.completion.Free()) <= len(k.inflight) {
			return unix.EAGAIN
		}
		d := k.tx.At(idx)
		k.tx.Release(1)
		if d.Len == 0 || !k.umem.Contains(d.Addr, d.Len) {
			k.stats.Tx_invalid_descs++
			k.inflight = append(k.inflight, d.Addr)
			k.completeUnheld()
			return 0 // without an error, whatever is left
		}
		k.inflight = append(k.inflight, d.Addr)
		if k.peerBusy {
			k.completeUnheld()
			return unix.EBUSY
		}
		k.sentCount++
		if !k.cfg.Discard {
			k.sent = append(k.sent, bytes.Clone(k.umem.Bytes(d.Addr, d.Len)))
		}
		k.completeUnheld()
	}
}

func (k *Kernel) completeUnheld() {
	if !k.cfg.HoldCompletions {
		k.complete(len(k.inflight))
	}
}

// Complete posts the completions of up to n frames that were sent, oldest first,
// and returns how many.
func (k *Kernel) Complete(n int) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.complete(n)
}

func (k *Kernel) complete(n int) int {
	n = min(n, len(k.inflight))
	idx, room := k.completion.Reserve(uint32(n))
	n = int(room)
	for i, addr := range k.inflight[:n] {
		k.completion.Set(idx+uint32(i), addr)
	}
	k.completion.Submit(room)
	k.inflight = append(k.inflight[:0], k.inflight[n:]...)
	return n
}

// CompleteAddr posts a completion of any address, like that of an invalid
// descriptor. It reports whether there was room.
func (k *Kernel) CompleteAddr(addr uint64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	idx, room := k.completion.Reserve(1)
	if room == 0 {
		return false
	}
	k.completion.Set(idx, addr)
	k.completion.Submit(1)
	return true
}

// Sent returns copies of the frames sent since the last call, in order.
func (k *Kernel) Sent() [][]byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	sent := k.sent
	k.sent = nil
	return sent
}

// SentCount is how many frames were sent.
func (k *Kernel) SentCount() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sentCount
}

// InFlight is how many frames were sent and have not completed.
func (k *Kernel) InFlight() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.inflight)
}
