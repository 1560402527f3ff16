// SPDX-License-Identifier: Apache-2.0

package datapath

import "github.com/asavie/xdp"

// receive takes up to budget descriptors off the RX ring. The slots are given
// back at once, since the descriptors are copied: the kernel can go on while
// the batch is worked on.
func (q *Queue) receive(budget int) []xdp.Desc {
	ring := q.sock.Rx
	idx, n := ring.Peek(uint32(min(budget, Weight)))
	frames := q.frames[:n]
	bytes := uint64(0)
	for i := range frames {
		frames[i] = ring.At(idx + uint32(i))
		bytes += uint64(frames[i].Len)
	}
	ring.Release(n)
	if q.out.copies {
		q.touched += q.umem.Touch(frames)
	}
	q.c.RxPackets += uint64(n)
	q.c.RxBytes += bytes
	return frames
}
