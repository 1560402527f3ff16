// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// An MTU that is changed while the daemon runs is noticed: what it says, what it
// warns of, and what it lets out follow. Frames that fit go on.
func TestIntegrationMTUChangeIsFollowed(t *testing.T) {
	r := newRig(t, netlab.VethOptions{})
	r.start()
	f := r.forth(bench.StreamConfig{Size: bench.Fixed(1514)})
	whole := func() {
		t.Helper()
		f.send(100)
		f.arrive()
		f.complete()
	}
	change := func(ifname string, was, is int) {
		t.Helper()
		if err := r.router.SetMTU(ifname, is); err != nil {
			t.Fatal(err)
		}
		labtest.WaitFor(t, fmt.Sprintf("MTU %d of %s to be shown", is, ifname), func() bool {
			return r.scrape().sum("port_mtu_bytes", "port", ifname) == float64(is)
		})
		r.says("mtu changed", "port="+ifname, fmt.Sprintf("was=%d", was), fmt.Sprintf("is=%d", is))
	}
	whole()
	change("r0", 1500, 9000)
	r.says("level=WARN", "longer than a chunk", "port=r0", "mtu=9000", "--frame-size 4096")
	whole()
	change("r0", 9000, 1500)
	whole()
	change("r1", 1500, 1000) // the egress takes less now
	f.send(100)
	labtest.WaitFor(t, "frames that are too long to be counted", func() bool {
		return r.scrape().sum("port_transmit_drops_total", "port", "r1", "reason", "mtu") == 100
	})
	change("r1", 1000, 1500)
	again := r.forth(bench.StreamConfig{Size: bench.Fixed(1514)})
	again.send(100)
	again.arrive()
	r.stop()
}

// A peer whose MTU native mode does not allow: who insists on native is told
// all about it in one line, and else the port goes generic and works.
func TestIntegrationMTUOfThePeerTooLargeForNative(t *testing.T) {
	line := []string{"r0", "mtu 9000", "Peer MTU is too large", "limit is 3506", "veth peer", "lower that", "--xdp generic"}
	r := newRig(t, netlab.VethOptions{MTU: 9000})
	r.refuses(failure, line, "-p", "r0", "-p", "r1", "--wire", "r0=r1", "--xdp", "native")
	r.start()
	r.says(append(line, "level=WARN", "generic mode is used")...)
	f := r.forth(bench.StreamConfig{Size: bench.Mixed(60, chunk)})
	f.send(200)
	f.arrive()
	f.complete()
	r.stop()
	r.nothingAttached()
}
