// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
)

const restarts = 20

// However often the daemon is stopped and started, without a pause and in
// traffic, each start forwards and each stop leaves nothing.
func TestIntegrationStopsAndStartsInARow(t *testing.T) {
	r := newRig(t, netlab.VethOptions{Queues: 2})
	defer r.traffic()()
	f := r.back(bench.StreamConfig{Flows: 8})
	var first string
	for i := range restarts {
		r.start()
		f.send(50)
		f.arrive()
		if now := r.holds(); i == 0 {
			first = now
			t.Logf("the daemon holds %s", first)
		} else if now != first {
			t.Errorf("start %d: the daemon holds %s, the first one held %s", i+1, now, first)
		}
		r.stop()
		r.nothingAttached()
	}
	f.complete()
}

// However often it is killed, the next daemon has its queues and takes over what
// the last one left attached.
func TestIntegrationKillsAndStartsInARow(t *testing.T) {
	r := newRig(t, netlab.VethOptions{Queues: 2})
	stop := r.traffic()
	f := r.back(bench.StreamConfig{Flows: 8})
	for i := range restarts {
		r.start()
		if adopted := strings.Count(r.daemon.Log(), "adopted=true"); i > 0 && adopted != 2 {
			t.Fatalf("start %d adopted %d programs, want 2:\n%s", i+1, adopted, r.daemon.Log())
		}
		f.send(50)
		f.arrive()
		r.kill()
		if i%2 == 0 { // else the next one comes while the queues are still busy
			f.send(50) // through the kernel
			f.arrive()
		}
	}
	f.complete()
	stop()
	r.start()
	r.stop()
	r.nothingAttached()
}

// traffic sends from a to b at a rate that is lost nowhere but in a restart.
func (r *rig) traffic() (stop func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	f, done := r.forth(bench.StreamConfig{Flows: 8, Size: bench.IMIX}), make(chan struct{})
	go func() {
		defer close(done)
		_ = f.sender.SendPaced(ctx, 1<<24, 5_000)
	}()
	return func() {
		cancel()
		<-done
		if report := f.report(); !report.Intact() || report.Arrived == 0 {
			r.t.Errorf("%s", report)
		}
	}
}
