// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// newBridged is a rig whose r0 is a bridge, a device without native XDP, with
// the link to a in it.
func newBridged(t *testing.T) *rig {
	r := newRig(t, netlab.VethOptions{})
	for _, err := range []error{
		r.router.SetDown("r0"), r.router.Rename("r0", "p0"), r.router.SetUp("p0"), r.router.AddBridge("r0", "p0"),
		r.router.WaitUp(labtest.Context(t), "p0"), r.router.WaitUp(labtest.Context(t), "r0"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// A device without native XDP is served in generic mode, and the log has one
// line about it.
func TestIntegrationDeviceWithoutNativeXDPFallsBack(t *testing.T) {
	r := newBridged(t)
	r.start()
	r.says("level=WARN", "native XDP refused", "port=r0", "not supported")
	if n := strings.Count(r.daemon.Log(), "port=r0 why="); n != 1 {
		t.Errorf("%d lines about it, want one:\n%s", n, r.daemon.Log())
	}
	forth, back := r.forth(bench.StreamConfig{Flows: 4}), r.back(bench.StreamConfig{Flows: 4})
	for _, f := range []*flow{forth, back} {
		for range 20 {
			f.send(100)
			f.arrive()
		}
		f.complete()
	}
	if n := r.scrape(); n.sum("port_info", "port", "r0", "xdp_mode", "generic") != 1 || n.sum("port_receive_packets_total", "port", "r0") < 2000 {
		t.Errorf("the metrics do not show a port in generic mode: %v", n["xskfwd_port_info"])
	}
	r.stop()
	r.nothingAttached()
}

// Who insists on native mode gets an error and no program.
func TestIntegrationNativeIsRefusedWhereThereIsNone(t *testing.T) {
	r := newBridged(t)
	r.refuses(failure, []string{"r0", "native", "not supported", "--xdp generic"}, "-p", "r0", "-p", "r1", "--wire", "r0=r1", "--xdp", "native")
}

// Generic mode on a device that has native as well works when asked for.
func TestIntegrationGenericModeForwards(t *testing.T) {
	r := newRig(t, netlab.VethOptions{Queues: 2})
	r.start("--xdp", "generic", "--workers", "2")
	f := r.forth(bench.StreamConfig{Flows: 16, Size: bench.Mixed(60, 1514)})
	for range 20 {
		f.send(100)
		f.arrive()
	}
	f.complete()
	r.stop()
	r.nothingAttached()
}
