// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// Runts, frames cut within a header, tags of every kind and lengths in place of
// a type: a wire does not look into them. They come out as they went in.
func TestIntegrationOddFramesComeOutUnchanged(t *testing.T) {
	for _, args := range [][]string{nil, {"--xdp", "generic"}, {"--frame-size", "4096"}} {
		t.Run(name(args), func(t *testing.T) {
			r := newRig(t, netlab.VethOptions{})
			r.start(args...)
			forth, back := r.forth(bench.StreamConfig{}), r.back(bench.StreamConfig{})
			forth.carriesOdd(bench.OddFrames(macA, macB))
			back.carriesOdd(bench.OddFrames(macB, macA))
			forth.send(64) // and nothing sticks after them
			forth.arrive()
			forth.complete()
			n := r.scrape()
			for _, direction := range []string{"receive", "transmit"} {
				if drops := n.sum("port_" + direction + "_drops_total"); drops != 0 {
					t.Errorf("%.0f %s drops", drops, direction)
				}
			}
			r.stop()
		})
	}
}

// carriesOdd sends the frames and compares what arrives with them.
func (f *flow) carriesOdd(odd []bench.OddFrame) {
	t := f.rig.t
	t.Helper()
	for _, o := range odd {
		if err := f.sender.SendRaw(labtest.Context(t), o.Bytes); err != nil {
			t.Fatalf("%s: %v", o.Name, err)
		}
	}
	err := f.recorder.WaitForeign(labtest.Context(t), len(odd))
	arrived := f.recorder.Foreign()
	for i := range max(len(odd), len(arrived)) {
		if i >= len(odd) || i >= len(arrived) || !bytes.Equal(arrived[i], odd[i].Bytes) {
			t.Errorf("frame %d: %s", i, differs(i, odd, arrived))
			break
		}
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, f.rig.daemon.Log())
	}
}

func differs(i int, odd []bench.OddFrame, arrived [][]byte) string {
	switch {
	case i >= len(odd):
		return fmt.Sprintf("one too many: %x", arrived[i])
	case i >= len(arrived):
		return odd[i].Name + " has not arrived"
	default:
		return fmt.Sprintf("%s came out as %x, was %x", odd[i].Name, arrived[i], odd[i].Bytes)
	}
}
