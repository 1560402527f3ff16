// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

const (
	idleFor = 10 * time.Second
	idleCPU = idleFor / 100 // one percent of a CPU
)

// A daemon with nothing to do does next to nothing, also while a frame that
// cannot leave waits in a TX ring. All of them idle at the same time.
func TestIntegrationIdleDaemonSleeps(t *testing.T) {
	type idler struct {
		*rig
		*flow
		name  string
		stuck bool
		since time.Duration
	}
	var idlers []*idler
	for _, args := range [][]string{{"--poll", "interrupt"}, {"--poll", "adaptive"}, {"--poll", "adaptive", "--tx-timer", "0"}} {
		for _, stuck := range []bool{false, true} {
			r := newRig(t, netlab.VethOptions{})
			r.start(args...)
			f := r.forth(bench.StreamConfig{})
			f.send(1000)
			f.arrive()
			if stuck {
				f.stick()
			}
			idlers = append(idlers, &idler{r, f, fmt.Sprintf("%s, stuck %v", name(args), stuck), stuck, 0})
		}
	}
	for _, i := range idlers {
		i.since = i.cpuTime()
	}
	end := time.Now().Add(idleFor)
	labtest.WaitFor(t, "time to pass", func() bool { return !time.Now().Before(end) })
	for _, i := range idlers {
		if used := i.cpuTime() - i.since; used >= idleCPU {
			t.Errorf("%s: %v of CPU time in %v, want less than %v", i.name, used, idleFor, idleCPU)
		}
	}
	for _, i := range idlers {
		if i.stuck { // it leaves when the link is back
			if err := i.router.SetUp("r1"); err != nil {
				t.Fatal(err)
			}
			i.arrive()
		}
		i.stop()
	}
}

// stick sends a frame that cannot leave.
func (f *flow) stick() {
	f.rig.t.Helper()
	if err := f.rig.router.SetDown("r1"); err != nil {
		f.rig.t.Fatal(err)
	}
	f.send(1)
	labtest.WaitFor(f.rig.t, "the frame to wait in the TX ring", func() bool {
		return f.rig.scrape().sum("xsk_ring_entries", "port", "r1", "ring", "tx") == 1
	})
}
