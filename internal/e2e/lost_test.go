// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// A wire that has lost a device is said to be dead, also when a device of the
// same name and number comes back. The other wire forwards on.
func TestIntegrationLostDeviceLeavesTheOtherWire(t *testing.T) {
	r := newRig(t, netlab.VethOptions{})
	labtest.Veth(t, r.router, "s0", r.a, "a1", netlab.VethOptions{B: netlab.End{GRO: true}})
	labtest.Veth(t, r.router, "s1", r.b, "b1", netlab.VethOptions{B: netlab.End{GRO: true}})
	r.start("-p", "s0", "-p", "s1", "--wire", "s0=s1")
	other := r.flow(bench.StreamConfig{ID: 3, Src: macA, Dst: macB, Flows: 8}, r.a, "a1", r.b, "b1")

	if err := r.router.Delete("r1"); err != nil {
		t.Fatal(err)
	}
	if err := r.daemon.WaitLog(labtest.Context(t), "the device is gone"); err != nil {
		t.Fatal(err)
	}
	labtest.Veth(t, r.router, "r1", r.b, "b0", netlab.VethOptions{})
	for range 20 {
		other.send(64)
		other.arrive()
	}
	other.complete()
	n := r.scrape()
	if up := n.sum("port_up", "port", "r1"); up != 0 {
		t.Errorf("port_up of r1 is %.0f", up)
	}
	if up := n.sum("port_up", "port", "s1"); up != 1 {
		t.Errorf("port_up of s1 is %.0f", up)
	}
	if times := strings.Count(r.daemon.Log(), "the device is gone"); times != 1 {
		t.Errorf("said %d times:\n%s", times, r.daemon.Log())
	}
	r.stop()
}
