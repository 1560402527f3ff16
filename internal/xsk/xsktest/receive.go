// SPDX-License-Identifier: Apache-2.0

package xsktest

import (
	"github.com/asavie/xdp"
	"golang.org/x/sys/unix"
)

// Deliver receives frames, the way redirected frames reach the socket: each
// takes a chunk of the fill ring. It returns how many got onto the RX ring; the
// others are counted as the kernel counts them.
func (k *Kernel) Deliver(frames ...[]byte) int {
	k.mu.Lock()
	n := 0
	for _, f := range frames {
		if k.deliver(f) {
			n++
		}
	}
	notify := k.cfg.Notify
	k.mu.Unlock()
	if n > 0 && notify != nil {
		notify()
	}
	return n
}

func (k *Kernel) deliver(frame []byte) bool {
	if len(frame) > k.umem.FrameSize()-Headroom {
		k.stats.Rx_dropped++
		return false
	}
	addr, ok := k.buffer()
	if !ok {
		k.stats.Rx_dropped++
		return false
	}
	idx, room := k.rx.Reserve(1)
	if room == 0 { // the chunk stays at the head of the fill ring
		k.stats.Rx_ring_full++
		return false
	}
	at := addr + Headroom
	copy(k.umem.Bytes(at, uint32(len(frame))), frame)
	k.fill.Release(1)
	k.rx.Set(idx, xdp.Desc{Addr: at, Len: uint32(len(frame))})
	k.rx.Submit(1)
	return true
}

// buffer looks for the next chunk of the fill ring that is in the UMEM. Others
// are skipped, and counted nowhere.
func (k *Kernel) buffer() (uint64, bool) {
	for {
		idx, got := k.fill.Peek(1)
		if got == 0 {
			k.stats.Rx_fill_ring_empty_descs++
			return 0, false
		}
		if p := k.umem.PageOf(k.fill.At(idx)); p != 0 {
			return k.umem.AddrOf(p), true
		}
		k.fill.Release(1)
	}
}

// recv is a kick of the fill ring. A copying socket has nothing to do.
func (k *Kernel) recv() unix.Errno {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.check()
}

// check is what both kicks fail with whatever the rings hold.
func (k *Kernel) check() unix.Errno {
	switch {
	case k.gone:
		return unix.ENXIO
	case k.down:
		return unix.ENETDOWN
	default:
		return k.fault
	}
}
