// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// A daemon that is stopped in the middle of a burst goes on where it was. What
// its rings hold is not lost; what they do not is counted, to the frame.
func TestIntegrationPausedDaemonGoesOn(t *testing.T) {
	const ring = 1024
	for _, row := range []struct {
		name     string
		frames   int // while it stands still
		overflow bool
	}{{"within the ring", ring / 2, false}, {"beyond the ring", 4 * ring, true}} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, netlab.VethOptions{})
			r.start("--rx-ring", "1024", "--fill-ring", "2048")
			f := r.forth(bench.StreamConfig{Flows: 4, Size: bench.IMIX})
			f.send(200)
			r.signal(unix.SIGSTOP)
			f.send(row.frames)
			r.signal(unix.SIGCONT)
			f.send(1)
			sent := float64(f.sender.Sent())
			var lost float64
			labtest.WaitFor(t, "all frames to have arrived or to be counted", func() bool {
				n := r.scrape()
				lost = n.sum("port_receive_drops_total", "port", "r0") + n.sum("port_transmit_drops_total", "port", "r1")
				return lost+float64(f.report().Arrived) == sent
			})
			if report := f.report(); !report.Intact() || (lost > 0) != row.overflow {
				t.Errorf("%.0f frames counted as lost, want some: %v; %s", lost, row.overflow, report)
			}
			after := r.back(bench.StreamConfig{})
			after.send(200)
			after.arrive()
			after.complete()
			r.stop()
		})
	}
}

func (r *rig) signal(s unix.Signal) {
	r.t.Helper()
	if err := r.daemon.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}
