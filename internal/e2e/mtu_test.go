// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

const (
	ethernet = 14 // bytes of a frame beyond the MTU
	vlanTag  = 4
	chunk    = 2048 - 256 // the longest frame a chunk of 2048 bytes takes
)

// The longest frame of each link passes, with a tag as well, and the first that
// is longer is counted where it is lost.
func TestIntegrationLengthsUpToTheLimitPass(t *testing.T) {
	for _, row := range []struct {
		name        string
		left, right int // MTU
		args        []string
		tags        []bench.Tag
		size        int
		lost        []string // metric and labels; nil: it arrives
	}{
		{"mtu", 1500, 1500, nil, nil, 1500 + ethernet, nil},
		{"mtu and tag", 1500, 1500, nil, []bench.Tag{{Type: 0x8100, TCI: 100}}, 1500 + ethernet + vlanTag, nil},
		{"longer than the egress takes", 1700, 1500, nil, nil, 1500 + ethernet + vlanTag + 1, []string{"port_transmit_drops_total", "port", "r1", "reason", "mtu"}},
		{"as the chunk", 3000, 3000, nil, nil, chunk, nil},
		{"longer than the chunk", 3000, 3000, nil, nil, chunk + 1, []string{"port_receive_drops_total", "port", "r0", "reason", "too_long"}},
		{"large chunks", 3000, 3000, []string{"--frame-size", "4096"}, nil, 3000 + ethernet, nil},
		{"large chunks generic", 3000, 3000, []string{"--frame-size", "4096", "--xdp", "generic"}, nil, 3000 + ethernet, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, netlab.VethOptions{MTU: max(row.left, row.right)})
			if err := r.router.SetMTU("r1", row.right); err != nil {
				t.Fatal(err)
			}
			r.start(row.args...)
			f := r.forth(bench.StreamConfig{Size: bench.Fixed(row.size), Tags: row.tags})
			f.send(100)
			if row.lost == nil {
				f.arrive()
				f.complete()
			} else {
				labtest.WaitFor(t, "the lost frames to be counted", func() bool {
					return r.scrape().sum(row.lost[0], row.lost[1:]...) == 100
				})
			}
			short := r.back(bench.StreamConfig{}) // nothing sticks
			short.send(100)
			short.arrive()
			short.complete()
			r.stop()
		})
	}
}
