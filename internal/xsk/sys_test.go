// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"testing"

	"github.com/asavie/xdp"
	"golang.org/x/sys/unix"
)

// TestSplitRingChecksTheKernelsOffsets: nothing outside of the mapping is ever
// pointed to.
func TestSplitRingChecksTheKernelsOffsets(t *testing.T) {
	good := unix.XDPRingOffset{Producer: 0, Consumer: 128, Flags: 192, Desc: 320}
	mem := make([]byte, 320+8*16)
	for _, c := range []struct {
		name    string
		off     unix.XDPRingOffset
		entries uint32
		ok      bool
	}{
		{"as-it-is", good, 8, true},
		{"more-entries-than-memory", good, 16, false},
		{"producer-outside", unix.XDPRingOffset{Producer: 448, Consumer: 128, Flags: 192, Desc: 320}, 8, false},
		{"consumer-outside", unix.XDPRingOffset{Producer: 0, Consumer: 1 << 40, Flags: 192, Desc: 320}, 8, false},
		{"flags-outside", unix.XDPRingOffset{Producer: 0, Consumer: 128, Flags: 445, Desc: 320}, 8, false},
		{"offset-that-wraps", unix.XDPRingOffset{Producer: ^uint64(3), Consumer: 128, Flags: 192, Desc: ^uint64(7)}, 8, false},
		{"entries-outside", unix.XDPRingOffset{Producer: 0, Consumer: 128, Flags: 192, Desc: 328}, 8, false},
		{"index-unaligned", unix.XDPRingOffset{Producer: 2, Consumer: 128, Flags: 192, Desc: 320}, 8, false},
		{"entries-unaligned", unix.XDPRingOffset{Producer: 0, Consumer: 128, Flags: 192, Desc: 316}, 8, false},
	} {
		shared, slots, err := splitRing[xdp.Desc](mem, c.off, c.entries)
		if (err == nil) != c.ok {
			t.Errorf("%s: got error %v, want none: %v", c.name, err, c.ok)
		}
		if err != nil {
			continue
		}
		r, err := NewProducer(shared, slots)
		if err != nil {
			t.Fatal(err)
		}
		r.Set(7, xdp.Desc{Addr: 1, Len: 2})
		r.Submit(8)
		if mem[0] != 8 || mem[320+7*16] != 1 || mem[320+7*16+8] != 2 {
			t.Errorf("%s: ring is not where the offsets say", c.name)
		}
	}
}
