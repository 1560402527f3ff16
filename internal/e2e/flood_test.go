// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// In traffic that began before the daemon, no frame is lost from the first that
// a program redirects: sockets and fill rings are ready before it.
func TestIntegrationNothingIsLostAfterTheFirstRedirect(t *testing.T) {
	for _, args := range [][]string{nil, {"--xdp", "generic"}, {"--workers", "4"}} {
		t.Run(name(args), func(t *testing.T) {
			r := newRig(t, netlab.VethOptions{Queues: 4})
			f := r.forth(bench.StreamConfig{Flows: 16, Size: bench.IMIX})
			ctx, cancel := context.WithCancel(labtest.Context(t))
			sent := make(chan error, 1)
			go func() { sent <- f.sender.SendPaced(ctx, 1<<24, 10_000) }()
			r.start(args...)
			const some = 5_000
			labtest.WaitFor(t, "frames to arrive", func() bool { return f.report().Arrived >= some })
			cancel()
			<-sent

			n := r.settled()
			for _, lost := range []string{"port_receive_drops_total", "port_transmit_drops_total", "xsk_rx_fill_ring_empty_descs_total"} {
				if frames := n.sum(lost); frames != 0 {
					t.Errorf("%s is %.0f, want 0", lost, frames)
				}
			}
			labtest.WaitFor(t, "all that was redirected to arrive", func() bool {
				return float64(f.report().Arrived) == n.sum("port_xdp_packets_total", "port", "r0", "action", "redirected")
			})
			if report := f.report(); !report.Intact() {
				t.Errorf("%s", report)
			}
			r.stop()
		})
	}
}
