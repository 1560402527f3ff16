// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
)

// A frame waits for nobody: whatever was sent after a silence arrives without
// later traffic, also around the sizes of a bulk (16), a poll (64) and more than
// one system call moves (32 and 64).
func TestIntegrationBurstAfterSilenceArrivesWhole(t *testing.T) {
	for _, args := range [][]string{
		nil,
		{"--poll", "interrupt"},
		{"--tx-timer", "0"},
		{"--bulk-size", "1", "--tx-timer-arm", "always"},
		{"--bulk-flush", "change", "--rx-ring", "256", "--tx-ring", "128", "--fill-ring", "512", "--completion-ring", "64", "--tx-frames", "64"},
	} {
		t.Run(name(args), func(t *testing.T) {
			r := newRig(t, netlab.VethOptions{})
			r.start(args...)
			forth, back := r.forth(bench.StreamConfig{}), r.back(bench.StreamConfig{})
			for _, frames := range []int{1, 15, 16, 17, 63, 64, 65, 200} {
				for _, f := range []*flow{forth, back} {
					f.send(frames)
					f.arrive()
				}
			}
			forth.complete()
			back.complete()
			r.stop()
		})
	}
}
