// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// FailToWireWarning says in one line that, as things stand, the kernel would
// drop all that this port redirects to its partner: in fail-to-wire, and on
// queues without a socket. It is empty when nothing is known to be wrong, which
// includes kernels before 6.3, ports that are not attached in native mode, and
// ports without a partner. It asks the kernel at each call, since the answer
// changes with the partner's driver, and on veth with the other end of the pair.
// Attach the partner before asking: many drivers take frames only from then on.
//
// It may miss one case: a veth whose far end lost its NAPI while it was down.
func (p *Port) FailToWireWarning() string {
	if p.link == nil || p.mode != Native || p.opts.Partner == 0 {
		return ""
	}
	features, err := xdpFeatures(p.opts.Partner)
	if err != nil || features&netdevXDPActNdoXmit != 0 {
		return ""
	}
	partner, err := netlink.LinkByIndex(p.opts.Partner)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("frames redirected in the kernel to %s would be lost (fail-to-wire, and queues that are not served): %s",
		partner.Attrs().Name, takesNone(partner))
}

// takesNone words why a device takes no redirected frames, and the cure. A veth
// end takes them when its peer runs NAPI, whatever runs on itself. The kernel
// looks at that when the end is set up and when the peer's GRO changes while
// the peer is up (measured on 6.18: GRO switched on while the peer was down is
// not seen, nor is switching it on again).
func takesNone(l netlink.Link) string {
	if l.Type() != "veth" {
		return fmt.Sprintf("its driver (%s) takes none now, though many do while a native program is on the device; cure: --xdp generic", l.Type())
	}
	peer, named := "PEER", "the other end of its veth pair (PEER, in another network namespace)"
	if name := vethPeer(l); name != "" {
		peer, named = name, fmt.Sprintf("the other end of its veth pair, %s,", name)
	}
	return fmt.Sprintf("it takes none while %s runs no NAPI; cure: ethtool -K %s gro on while %s is up (gro off first if it is on already), or --xdp generic",
		named, peer, peer)
}

// vethPeer is empty when the peer is in another network namespace.
func vethPeer(l netlink.Link) string {
	if l.Attrs().NetNsID >= 0 {
		return ""
	}
	peer, err := netlink.LinkByIndex(l.Attrs().ParentIndex)
	if err != nil {
		return ""
	}
	return peer.Attrs().Name
}
