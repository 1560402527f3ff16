// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"github.com/asavie/xdp"

	"github.com/xskfwd/xskfwd/bulk"
)

const (
	etherHeaderBytes = 14 // ETH_HLEN
	vlanTagBytes     = 4  // VLAN_HLEN
)

// MaxFrameBytes is the longest frame that may leave through a device of this
// MTU: the rule of the kernel's is_skb_forwardable, by which veth and bridge
// drop what is longer. A longer frame would be completed and not sent.
func MaxFrameBytes(mtu int) uint32 { return uint32(mtu) + etherHeaderBytes + vlanTagBytes }

// forward is the wire's verdict: every frame leaves through the partner port,
// unchanged, but for those no device could send. It returns the frames that
// leave, in order, in the same array.
//
// Reasons: DropRunt, DropTooLong.
func (q *Queue) forward(frames []xdp.Desc, done *bulk.FrameBulk) []xdp.Desc {
	limit := q.out.maxBytes.Load() - etherHeaderBytes
	for i := range frames {
		// One comparison for both ends: a runt wraps to a huge number.
		if frames[i].Len-etherHeaderBytes > limit {
			return q.forwardSome(frames, i, limit, done)
		}
	}
	return frames
}

// forwardSome goes on from the first frame that may not leave.
func (q *Queue) forwardSome(frames []xdp.Desc, first int, limit uint32, done *bulk.FrameBulk) []xdp.Desc {
	kept := first
	for _, f := range frames[first:] {
		switch {
		case f.Len < etherHeaderBytes:
			q.drop(f, DropRunt, done)
		case f.Len-etherHeaderBytes > limit:
			q.drop(f, DropTooLong, done)
		default:
			frames[kept] = f
			kept++
		}
	}
	return frames[:kept]
}

// drop counts a frame received on this queue and sends its page home.
func (q *Queue) drop(f xdp.Desc, why DropReason, done *bulk.FrameBulk) {
	q.c.Drops[why]++
	done.Return(q.umem.PageOf(f.Addr), q.memID)
}
