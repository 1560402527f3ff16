// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"sync"
	"testing"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// 200 000 numbered frames of mixed sizes and flows each way, as fast as they can
// be sent: nothing arrives twice, out of order or with a wrong byte, and what is
// missing is in the drop counters, to the frame.
func TestIntegrationWhatIsMissingAtFullSpeedIsCounted(t *testing.T) {
	const frames = 200_000
	r := newRig(t, netlab.VethOptions{})
	// Different sizes for all rings, so that a mask mixed up would show.
	r.start("--rx-ring", "1024", "--tx-ring", "512", "--fill-ring", "4096", "--completion-ring", "256")
	flows := []*flow{
		r.forth(bench.StreamConfig{Flows: 8, Size: bench.Mixed(60, 1514)}),
		r.back(bench.StreamConfig{Flows: 8, Size: bench.Mixed(60, 1514)}),
	}
	var sending sync.WaitGroup
	for _, f := range flows {
		sending.Go(func() {
			if err := f.sender.Send(labtest.Context(t), frames); err != nil {
				t.Error(err)
			}
		})
	}
	sending.Wait()
	for i, f := range flows {
		in := []string{"r0", "r1"}[i]
		out := []string{"r1", "r0"}[i]
		labtest.WaitFor(t, "what is missing to be in the counters", func() bool {
			n, report := r.scrape(), f.report()
			lost := n.sum("port_receive_drops_total", "port", in) + n.sum("port_transmit_drops_total", "port", out)
			return lost+float64(report.RecorderLost)+float64(report.Arrived) == frames
		})
		report := f.report()
		if !report.Intact() {
			t.Errorf("%s -> %s: %s", in, out, report)
		}
		if report.Arrived < frames/10 {
			t.Errorf("%s -> %s: hardly anything arrived: %s", in, out, report)
		}
		t.Logf("%s -> %s: %s", in, out, report)
	}
	r.stop()
}
