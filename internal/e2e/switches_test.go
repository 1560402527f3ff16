// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// Every switch of the recycling and of the TX timer works both ways: all frames
// arrive, and the counters show which way it stands.
//
// Frames of four pools leave through the one queue of r1, so that a bulk has
// mixed pools in it.
func TestIntegrationSwitchesShowInTheCounters(t *testing.T) {
	const bulks, frames, timer = "page_pool_bulk_flushes_total", "page_pool_bulk_flushed_frames_total", "tx_coalesce_timer_"
	for _, row := range []struct {
		args  []string
		shows func(n numbers) bool
	}{
		{nil, func(n numbers) bool { return 2*n.sum(bulks) < n.sum(frames) && n.sum(bulks, "reason", "full") > 0 }},
		{[]string{"--bulk-size", "1"}, func(n numbers) bool { return n.sum(bulks) == n.sum(frames) && n.sum(frames) > 0 }},
		{[]string{"--bulk-size", "4"}, func(n numbers) bool { return 4*n.sum(bulks) >= n.sum(frames) && n.sum(bulks) < n.sum(frames) }},
		{[]string{"--bulk-flush", "partition"}, func(n numbers) bool { return n.sum(bulks, "reason", "pool_change") == 0 }},
		{[]string{"--bulk-flush", "change"}, func(n numbers) bool { return n.sum(bulks, "reason", "pool_change") > 0 }},
		{[]string{"--tx-timer", "0"}, func(n numbers) bool { return n.sum(timer+"armed_total") == 0 && n.sum(timer+"syscalls_total") == 0 }},
		{[]string{"--tx-timer-arm", "always"}, func(n numbers) bool {
			return n.sum(timer+"skipped_total") == 0 && n.sum(timer+"syscalls_total") >= n.sum("tx_flushes_total")
		}},
		{[]string{"--tx-timer-arm", "idle"}, func(n numbers) bool {
			return n.sum(timer+"skipped_total") > 0 && n.sum(timer+"syscalls_total") < n.sum("tx_flushes_total") && n.sum(timer+"armed_total") > 0
		}},
		{[]string{"--tx-frames", "1", "--workers", "2"}, func(n numbers) bool { return n.sum("napi_schedules_total", "source", "kick") > 0 }},
	} {
		t.Run(name(row.args), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, netlab.VethOptions{Queues: 4})
			r.launch(append([]string{"-p", "r0", "-p", "r1:0", "--wire", "r0=r1", "--workers", "1"}, row.args...)...)
			r.waitForwarding()
			f := r.forth(bench.StreamConfig{Flows: 32})
			for range 40 {
				f.send(50)
				f.arrive()
			}
			f.complete()
			var n numbers
			labtest.WaitFor(t, "the counters to be those of the end", func() bool {
				n = r.scrape()
				const unreaped = 25 // --tx-frames: so many may lie there without a timer
				return n.sum("port_receive_packets_total") == 40*50 && n.sum(frames) > 40*50-unreaped
			})
			if !row.shows(n) {
				t.Errorf("bulks %.0f (full %.0f, pool change %.0f) of %.0f frames; timer armed %.0f, skipped %.0f, syscalls %.0f; %.0f batches",
					n.sum(bulks), n.sum(bulks, "reason", "full"), n.sum(bulks, "reason", "pool_change"), n.sum(frames),
					n.sum(timer+"armed_total"), n.sum(timer+"skipped_total"), n.sum(timer+"syscalls_total"), n.sum("tx_flushes_total"))
			}
			r.stop()
		})
	}
}
