// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// asNetnsExec does what `ip netns exec` does before it runs a program: a mount
// namespace of its own, with a fresh sysfs that has no bpffs in it.
const asNetnsExec = `umount -l /sys && mount -t sysfs sysfs /sys && exec "$0" "$@"`

// In a private mount namespace no pin outlives the daemon. It says so, forwards
// all the same, and when it is killed the ports are bare.
func TestIntegrationPrivateMountsEndFailToWire(t *testing.T) {
	r := newRig(t, netlab.VethOptions{})
	path, err := daemonBinary()
	if err != nil {
		t.Fatal(err)
	}
	r.daemon = labtest.StartProcess(t, r.router, netlab.Command{Path: "unshare", Env: r.env, Args: []string{
		"--mount", "--propagation", "slave", "sh", "-c", asNetnsExec,
		path, "run", "--metrics", metricsAddr, "-p", "r0", "-p", "r1", "--wire", "r0=r1",
	}})
	r.waitForwarding()
	r.says("level=WARN", "fail-to-wire ends with this process", "private mount namespace")
	r.says("program attached", "port=r0", "pinned=false")
	forth, back := r.forth(bench.StreamConfig{}), r.back(bench.StreamConfig{})
	for _, f := range []*flow{forth, back} {
		f.send(200)
		f.arrive()
		f.complete()
	}
	r.kill()
	labtest.WaitFor(t, "the programs to go with the daemon", func() bool {
		for _, ifname := range []string{"r0", "r1"} {
			if l, err := r.router.Link(ifname); err != nil || l.Xdp.Attached {
				return false
			}
		}
		return true
	})
	r.detach("promiscuous mode") // which the daemon had no time to put back
	r.nothingAttached()
}
