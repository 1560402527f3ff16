// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// Many flows over several queues and workers arrive once and in order, whether
// each worker has a TX queue of its own or they share one.
func TestIntegrationQueuesAndWorkersKeepOrder(t *testing.T) {
	for _, row := range []struct {
		name   string
		args   []string
		shared bool // pages come home from other workers
	}{
		{"4=4 one worker", []string{"-p", "r0", "-p", "r1", "--workers", "1"}, false},
		{"4=4 two workers", []string{"-p", "r0", "-p", "r1", "--workers", "2"}, false},
		{"4=4 three workers", []string{"-p", "r0", "-p", "r1", "--workers", "3"}, false},
		{"4=4 four workers", []string{"-p", "r0", "-p", "r1", "--workers", "4"}, false},
		{"4=1 two workers", []string{"-p", "r0", "-p", "r1:0", "--workers", "2"}, true},
		{"4=1 two workers busy", []string{"-p", "r0", "-p", "r1:0", "--workers", "2", "--poll", "busy"}, true},
		{"4=1 three workers interrupt", []string{"-p", "r0", "-p", "r1:3", "--workers", "3", "--poll", "interrupt", "--bulk-flush", "change"}, true},
		{"2=4 six workers", []string{"-p", "r0:1,3", "-p", "r1", "--workers", "6"}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, netlab.VethOptions{Queues: 4})
			r.launch(append(row.args, "--wire", "r0=r1")...)
			r.waitForwarding()
			flows := []*flow{r.forth(bench.StreamConfig{Flows: 64, Size: bench.IMIX}), r.back(bench.StreamConfig{Flows: 64})}
			for range 20 {
				for _, f := range flows {
					f.send(200)
				}
				for _, f := range flows {
					f.arrive()
				}
			}
			for _, f := range flows {
				f.complete()
			}
			labtest.WaitFor(t, "both directions to be counted", func() bool {
				n := r.scrape()
				return n.sum("port_receive_packets_total")+n.sum("port_xdp_packets_total", "action", "partner") >= 8000
			})
			if home := r.scrape().sum("page_pool_recycle_ring_total"); (home > 0) != row.shared {
				t.Errorf("%.0f pages came home from other workers, want some: %v", home, row.shared)
			}
			r.stop()
		})
	}
}

// Queues that are not served stay in the wire: the kernel joins them to the
// partner, and all flows arrive.
func TestIntegrationQueuesNotServedGoThroughTheKernel(t *testing.T) {
	r := newRig(t, netlab.VethOptions{Queues: 4})
	r.launch("-p", "r0:0-1", "-p", "r1:2", "--wire", "r0=r1")
	r.waitForwarding()
	for i, f := range []*flow{r.forth(bench.StreamConfig{Flows: 64}), r.back(bench.StreamConfig{Flows: 64})} {
		for range 10 {
			f.send(200)
			f.arrive()
		}
		f.complete()
		port := []string{"r0", "r1"}[i]
		labtest.WaitFor(t, "the frames of "+port+" to be counted", func() bool {
			n := r.scrape()
			kernel := n.sum("port_xdp_packets_total", "port", port, "action", "partner")
			ours := n.sum("port_receive_packets_total", "port", port)
			return kernel > 0 && ours > 0 && kernel+ours == 2000
		})
	}
	r.stop()
}
