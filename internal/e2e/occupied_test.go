// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"net"
	"os/exec"
	"testing"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// A second daemon on a queue ends and says why; the first goes on forwarding.
func TestIntegrationSecondDaemonLeavesTheFirstAlone(t *testing.T) {
	r := newRig(t, netlab.VethOptions{})
	r.start()
	first := r.daemon
	f := r.forth(bench.StreamConfig{})
	f.send(100)
	f.arrive()
	r.launch("-p", "r0", "-p", "r1", "--wire", "r0=r1", "--metrics", "")
	err := r.daemon.Wait(labtest.Context(t))
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != failure {
		t.Errorf("the second ended with %v, want exit code %d", err, failure)
	}
	r.says("r0", "queue 0", "in use")
	r.daemon = first
	f.send(1000)
	f.arrive()
	f.complete()
	if got := r.receivesAtLeast(1100); got != 1100 {
		t.Errorf("%.0f frames went through the first daemon, want all 1100", got)
	}
	r.stop()
	r.nothingAttached()
}

// receivesAtLeast waits until so many frames are counted at r0.
func (r *rig) receivesAtLeast(frames float64) (got float64) {
	r.t.Helper()
	labtest.WaitFor(r.t, "the frames to be counted", func() bool {
		got = r.scrape().sum("port_receive_packets_total", "port", "r0")
		return got >= frames
	})
	return got
}

// A metrics address that is taken does not keep the daemon from forwarding, and
// it says so.
func TestIntegrationTakenMetricsAddressStopsNoFrame(t *testing.T) {
	r := newRig(t, netlab.VethOptions{})
	var taken net.Listener
	if err := r.router.Do(func() (err error) { taken, err = net.Listen("tcp", metricsAddr); return err }); err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	r.start()
	r.says(metricsAddr, "in use", "no metrics for now")
	f := r.forth(bench.StreamConfig{})
	f.send(200)
	f.arrive()
	f.complete()
	r.stop()
}
