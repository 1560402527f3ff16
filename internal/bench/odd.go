// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"net"
	"slices"
)

// OddFrame is a frame that parsers stumble over, or that the kernel must see.
type OddFrame struct {
	Name  string
	Bytes []byte
}

// OddFrames are frames a wire must carry unchanged whatever is in them:
// runts, frames cut within a header, VLAN tags of every kind, ARP and IPv6.
// No two are alike.
func OddFrames(src, dst net.HardwareAddr) []OddFrame {
	broadcast := net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	ipv4 := []byte{0x08, 0x00, 0x45, 0, 0, 46, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}
	ipv6 := append([]byte{0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 17, 64}, make([]byte, 32)...)
	ethernet := func(dst net.HardwareAddr, parts ...[]byte) []byte {
		return slices.Concat(append([][]byte{dst, src}, parts...)...)
	}
	tag := func(tpid, tci uint16) []byte {
		return []byte{byte(tpid >> 8), byte(tpid), byte(tci >> 8), byte(tci)}
	}
	return []OddFrame{
		{"runt-14", ethernet(dst, []byte{0x88, 0xb5})},
		{"runt-15", ethernet(dst, []byte{0x88, 0xb5, 1})},
		{"runt-59", pad(ethernet(dst, []byte{0x88, 0xb5, 2}), 59)},
		{"short-60", pad(ethernet(dst, []byte{0x88, 0xb5, 3}), 60)},
		{"zeroes", make([]byte, 60)},
		{"ipv4-cut-in-header", ethernet(dst, ipv4[:2+10])},
		{"ipv6-cut-in-header", ethernet(dst, ipv6[:2+20])},
		{"tcp-cut-in-header", ethernet(dst, ipv4, []byte{0, 80, 0, 80, 1, 2})},
		{"length-instead-of-type", pad(ethernet(dst, []byte{0x00, 0x26, 0x42, 0x42, 0x03}), 60)},
		{"vlan-1", pad(ethernet(dst, tag(0x8100, 1), ipv4), 64)},
		{"vlan-100", pad(ethernet(dst, tag(0x8100, 100), ipv4), 64)},
		{"vlan-4095", pad(ethernet(dst, tag(0x8100, 4095), ipv4), 64)},
		{"priority-tag", pad(ethernet(dst, tag(0x8100, 7<<13), ipv4), 64)},
		{"qinq", pad(ethernet(dst, tag(0x88a8, 200), tag(0x8100, 300), ipv4), 68)},
		{"tag-and-runt", ethernet(dst, tag(0x8100, 5), []byte{0x88, 0xb5, 4, 4})}, // one byte less, and the receiving kernel drops it
		{"arp-request", pad(ethernet(broadcast, []byte{0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1}, src,
			[]byte{10, 0, 0, 1}, make([]byte, 6), []byte{10, 0, 0, 2}), 60)},
		{"ipv6-udp", ethernet(dst, ipv6, []byte{0, 9, 0, 9, 0, 8, 0xff, 0xde})},
	}
}

// pad lengthens a frame with zeroes.
func pad(frame []byte, size int) []byte {
	return append(frame, make([]byte, max(0, size-len(frame)))...)
}
