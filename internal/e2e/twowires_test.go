// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"testing"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// Two wires of one daemon share its memory and nothing else: no frame of one
// comes out of the other, and one that is cut does not hold up the other.
func TestIntegrationTwoWiresKeepApart(t *testing.T) {
	for _, args := range [][]string{nil, {"--workers", "2"}, {"--workers", "4"}, {"--umem-frames", "128", "--rx-ring", "64", "--tx-ring", "64", "--fill-ring", "64", "--completion-ring", "64"}} {
		t.Run(name(args), func(t *testing.T) {
			r := newRig(t, netlab.VethOptions{})
			left, right := netlab.VethOptions{}, netlab.VethOptions{}
			left.B.GRO, right.B.GRO = true, true
			labtest.Veth(t, r.router, "s0", r.a, "a1", left)
			labtest.Veth(t, r.router, "s1", r.b, "b1", right)
			r.start(append(args, "-p", "s0", "-p", "s1", "--wire", "s0=s1")...)

			second := bench.StreamConfig{ID: 3, Src: macA, Dst: macB, Flows: 8}
			first, other := r.forth(bench.StreamConfig{Flows: 8}), r.flow(second, r.a, "a1", r.b, "b1")
			const burst = 8 // the smallest memory has no more than that posted at its worst
			for range 50 {
				first.send(burst)
				other.send(burst)
				first.arrive()
				other.arrive()
			}
			// Cut the first. What is stuck in it must not be missing in the second.
			if err := r.router.SetDown("r1"); err != nil {
				t.Fatal(err)
			}
			first.send(500)
			for range 50 {
				other.send(burst)
				other.arrive()
			}
			for _, f := range []*flow{first, other} {
				if report := f.report(); report.Foreign != 0 || !report.Intact() {
					t.Errorf("%s", report)
				}
			}
			other.complete()
			if err := errors.Join(r.router.SetUp("r1"), r.b.WaitUp(labtest.Context(t), "b0")); err != nil {
				t.Fatal(err)
			}
			again := r.back(bench.StreamConfig{})
			again.send(burst)
			again.arrive()
			again.complete()
			r.stop()
		})
	}
}
