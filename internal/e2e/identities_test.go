// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// What is scraped adds up by itself, once traffic is over: the identities of the
// page pools, of the bulks, of the wire and of the timer, from the text alone.
func TestIntegrationScrapedNumbersAddUp(t *testing.T) {
	for _, args := range [][]string{nil, {"--workers", "2", "--poll", "interrupt"}, {"--bulk-size", "1", "--tx-timer-arm", "always"}, {"--bulk-flush", "change", "--tx-timer", "0", "--tx-frames", "1"}} {
		t.Run(name(args), func(t *testing.T) {
			r := newRig(t, netlab.VethOptions{Queues: 2})
			r.launch(append([]string{"-p", "r0", "-p", "r1:0", "--wire", "r0=r1"}, args...)...)
			r.waitForwarding()
			forth := r.forth(bench.StreamConfig{Flows: 16, Size: bench.IMIX})
			forth.send(20_000) // some of it may be lost, and is then in the ledger
			if err := forth.recorder.WaitQuiet(labtest.Context(t), quiet); err != nil {
				t.Fatal(err)
			}
			n := r.settled()
			for _, broken := range n.identities() {
				t.Error(broken)
			}
			left := n.sum("port_transmit_packets_total", "port", "r1")
			if report := forth.report(); left != float64(report.Arrived) {
				t.Errorf("%.0f frames left through r1 by count, but: %s", left, report)
			}
			r.stop()
		})
	}
}

// identities returns the ones that do not hold. They hold when all is quiet.
func (n numbers) identities() (broken []string) {
	equal := func(what string, left, right float64) {
		if left != right {
			broken = append(broken, fmt.Sprintf("%s: %.0f and %.0f", what, left, right))
		}
	}
	pool := func(names ...string) (total float64) {
		for _, name := range names {
			total += n.sum("page_pool_" + name)
		}
		return total
	}
	handed := pool("alloc_fast_total", "alloc_refill_total", "alloc_slow_total")
	returned := pool("recycle_cached_total", "recycle_ring_total", "recycle_ring_full_total")
	posted := n.sum("umem_frames", "state", "fill") + n.sum("port_receive_packets_total")
	equal("frames handed out, and frames posted and received", handed, posted)
	equal("frames received, and returned", n.sum("port_receive_packets_total"), returned)
	equal("frames returned, and in bulks", returned, pool("bulk_flushed_frames_total"))
	equal("frames in flight, and not free", pool("inflight_frames"), n.sum("umem_frames")-n.sum("umem_frames", "state", "free"))
	equal("cache", pool("cache_frames"), n.sum("umem_frames", "state", "cache"))
	equal("ring", pool("ring_frames"), n.sum("umem_frames", "state", "ring"))
	in := n.sum("port_receive_packets_total")
	out := n.sum("port_transmit_packets_total") + n.sum("port_transmit_drops_total") + n.sum("port_receive_drops_total", "reason", "runt")
	equal("frames received, and transmitted or dropped", in, out)
	ended := n.sum("tx_coalesce_timer_fired_total") + n.sum("tx_coalesce_timer_cancelled_total")
	equal("timers armed, and ended", n.sum("tx_coalesce_timer_armed_total"), ended)
	return broken
}
