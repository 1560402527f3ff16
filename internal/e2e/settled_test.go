// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"

	dto "github.com/prometheus/client_model/go"

	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// settled is a scrape after traffic has ended: all that was received has been
// sent and has come home, and no timer runs. A scrape may be a quarter of a
// second old, so it waits for what must come.
func (r *rig) settled() (n numbers) {
	r.t.Helper()
	labtest.WaitFor(r.t, "all frames to be home, and all timers to have ended", func() bool {
		n = r.scrape()
		return n.sum("umem_frames", "state", "tx")+n.sum("umem_frames", "state", "rx")+n.sum("umem_frames", "state", "completion") == 0 &&
			n.sum("port_receive_packets_total") == n.sum("port_xdp_packets_total", "action", "redirected")-n.sum("xsk_rx_dropped_total")-n.sum("xsk_rx_ring_full_total") &&
			n.sum("tx_coalesce_timer_armed_total") == n.sum("tx_coalesce_timer_fired_total")+n.sum("tx_coalesce_timer_cancelled_total")
	})
	return n
}

// value finds the counter with the labels of another one; -1 is none.
func (n numbers) value(name string, like *dto.Metric) float64 {
	for _, m := range n[name].GetMetric() {
		if slices.EqualFunc(m.GetLabel(), like.GetLabel(), func(a, b *dto.LabelPair) bool {
			return a.GetName() == b.GetName() && a.GetValue() == b.GetValue()
		}) {
			return m.GetCounter().GetValue()
		}
	}
	return -1
}
