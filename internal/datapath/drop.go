// SPDX-License-Identifier: Apache-2.0

package datapath

// DropReason says why a frame that was received did not leave. Each dropped
// frame has exactly one. The zero value is a reason too, so that a verdict
// nobody set is a drop and not a frame sent by mistake.
type DropReason uint8

const (
	// DropUnset is a verdict nobody gave: a fault of this program. Stays 0.
	DropUnset DropReason = iota
	// DropRunt: shorter than an Ethernet header. The kernel would complete it
	// without sending it.
	DropRunt
	// DropTooLong: longer than the egress port's MTU plus Ethernet header and
	// one VLAN tag, which is what the kernel lets pass.
	DropTooLong
	// DropTxRingFull: the egress TX ring had no room after a kick.
	DropTxRingFull
	// DropLinkDown: the egress link is administratively down, or its device gone.
	DropLinkDown
	// DropReasons is their number.
	DropReasons
)

// String is the value of the metric label `reason`.
func (r DropReason) String() string {
	switch r {
	case DropUnset:
		return "unset"
	case DropRunt:
		return "runt"
	case DropTooLong:
		return "too_long"
	case DropTxRingFull:
		return "tx_ring_full"
	case DropLinkDown:
		return "link_down"
	default:
		return "unknown"
	}
}
