// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// From linux/netdev.h: the generic netlink family that knows what XDP a driver
// has, since Linux 6.3.
const (
	netdevFamily          = "netdev"
	netdevCmdDevGet       = 1
	netdevADevIfindex     = 1
	netdevADevXDPFeatures = 3
	netdevXDPActBasic     = 1 << 0 // native XDP at all
	netdevXDPActNdoXmit   = 1 << 2 // takes frames that native programs redirect, at present
	xdpFeaturesBytes      = 8
)

// needsGeneric says why native mode would cut the wire: a native program
// redirects by the partner's driver, and a driver without native XDP takes no
// frame that way, so fail-to-wire would lose all of them (measured with a
// bridge as the partner). A generic program redirects to any device. It is
// empty when native is fine, or the kernel is too old to ask.
func needsGeneric(partner int) (reason string) {
	if partner == 0 {
		return ""
	}
	features, err := xdpFeatures(partner)
	if err != nil || features&netdevXDPActBasic != 0 {
		return ""
	}
	name := fmt.Sprintf("interface index %d", partner)
	if l, err := netlink.LinkByIndex(partner); err == nil {
		name = l.Attrs().Name
	}
	return fmt.Sprintf("the partner %s has no native XDP, so only a generic program can redirect to it", name)
}

func xdpFeatures(ifindex int) (uint64, error) {
	family, err := netlink.GenlFamilyGet(netdevFamily)
	if err != nil {
		return 0, err
	}
	request := nl.NewNetlinkRequest(int(family.ID), 0)
	header := []byte{netdevCmdDevGet, 1, 0, 0} // nl.Genlmsg leaves the reserved bytes to chance, which is EINVAL here
	attr := nl.NewRtAttr(netdevADevIfindex, nl.Uint32Attr(uint32(ifindex)))
	request.AddRawData(append(header, attr.Serialize()...))
	answers, err := request.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil {
		return 0, err
	}
	for _, answer := range answers {
		attrs, err := nl.ParseRouteAttr(answer[nl.SizeofGenlmsg:])
		if err != nil {
			return 0, err
		}
		for _, a := range attrs {
			if a.Attr.Type == netdevADevXDPFeatures && len(a.Value) == xdpFeaturesBytes {
				return binary.NativeEndian.Uint64(a.Value), nil
			}
		}
	}
	return 0, fmt.Errorf("no XDP features of interface index %d", ifindex)
}
