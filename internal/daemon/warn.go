// SPDX-License-Identifier: Apache-2.0

package daemon

import "fmt"

// warnOfLimits says at start what would otherwise show as a counter only.
func (d *daemon) warnOfLimits(p *port) {
	const headroom = 256 // XDP_PACKET_HEADROOM, in front of every received frame
	room := uint32(d.cfg.FrameSize - headroom)
	if p.maxBytes.Load() > room {
		d.log.Warn("frames longer than a chunk are dropped by the kernel and counted as too_long",
			"port", p.name, "mtu", p.facts.mtu, "longest_frame_bytes", room,
			"cure", fmt.Sprintf("--frame-size 4096, or ip link set %s mtu %d", p.facts.ifname, room-18))
	}
	if !p.facts.adminUp {
		d.log.Warn("the interface is down: nothing is forwarded until it is up", "port", p.name, "cure", "ip link set "+p.facts.ifname+" up")
	}
}

// warnOfOffloads says what no counter shows: frames that leave their sender
// without a checksum, because its device does not look like a wire, are
// forwarded as they are, and their receiver drops them.
func (d *daemon) warnOfOffloads(p *port) {
	if p.facts.driver == "veth" {
		d.log.Warn("a veth sender leaves checksums and segmentation to a device that is not there: TCP and UDP from the other end's own host fail",
			"port", p.name, "cure", "ethtool -K PEER tx off tso off gso off, at the other end of the pair, unless they are off")
	}
}
