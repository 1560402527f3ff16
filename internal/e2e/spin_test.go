// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
)

// With one P, workers that spin leave the control plane its turn.
func TestIntegrationSpinningWorkersLeaveRoomForTheRest(t *testing.T) {
	r := newRig(t, netlab.VethOptions{})
	r.env = append(r.env, "GOMAXPROCS=1")
	r.start("--poll", "busy", "--cpus", "0")
	f := r.forth(bench.StreamConfig{Flows: 4})
	for range 20 {
		f.send(100)
		f.arrive()
		r.scrape()
	}
	if p := r.scrape()["go_sched_gomaxprocs_threads"].GetMetric(); len(p) != 1 || p[0].GetGauge().GetValue() < 2 {
		t.Errorf("the worker has the only P: %v", p)
	}
	f.complete()
	r.stop()
}
