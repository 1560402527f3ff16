// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// quiet is how long nothing must arrive for a stream to have ended. Frames take
// milliseconds; a loaded machine holds a process up for longer.
const quiet = time.Second

// Every frame of the UMEM is in one place at every scrape, whatever happens to
// the devices, and when all is quiet none is anywhere but where it waits.
func TestIntegrationCensusAddsUpWhateverHappens(t *testing.T) {
	for _, args := range [][]string{nil, {"--workers", "2"}, {"--umem-frames", "64", "--rx-ring", "64", "--tx-ring", "64", "--fill-ring", "64", "--completion-ring", "64"}} {
		t.Run(name(args), func(t *testing.T) {
			r := newRig(t, netlab.VethOptions{})
			r.start(args...)
			total := r.scrape().sum("umem_frames")
			stop := r.load()
			for _, event := range []func() error{
				func() error { return r.b.SetDown("b0") }, // the peer goes: the kernel refuses
				func() error { return r.b.SetUp("b0") },
				func() error { return r.router.SetDown("r1") }, // the port itself: frames wait
				func() error { return r.router.SetUp("r1") },
				func() error { return r.a.SetDown("a0") }, // the source goes
				func() error { return r.a.SetUp("a0") },
			} {
				if err := event(); err != nil {
					t.Fatal(err)
				}
				for range 20 {
					r.checkCensus(total)
				}
			}
			stop()
			labtest.WaitFor(t, "all frames to be where they wait", func() bool { return r.idle(total) })
			f := r.forth(bench.StreamConfig{})
			f.send(16)
			f.arrive()
			f.complete()
			r.stop() // with its own census, exact
		})
	}
}

// load sends both ways as fast as it goes until stop is called.
func (r *rig) load() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var sending sync.WaitGroup
	for _, f := range []*flow{r.forth(bench.StreamConfig{Size: bench.IMIX}), r.back(bench.StreamConfig{Size: bench.IMIX})} {
		sending.Go(func() {
			for ctx.Err() == nil {
				_ = f.sender.Send(ctx, 1000) // fails while its link is down
			}
		})
	}
	return func() {
		cancel()
		sending.Wait()
	}
}

// checkCensus scrapes and adds up. A page that a worker has taken from the UMEM
// since it last published is in no place yet; it must be in one soon.
func (r *rig) checkCensus(total float64) {
	r.t.Helper()
	labtest.WaitFor(r.t, "no frame to be held by nobody", func() bool {
		n := r.scrape()
		if sum := n.sum("umem_frames"); sum != total {
			r.t.Errorf("%.0f frames in all states, want %.0f", sum, total)
		}
		return n.sum("umem_frames", "state", "held") == 0
	})
}

// idle says whether frames are only where they wait for work.
func (r *rig) idle(total float64) bool {
	n := r.scrape()
	waiting := 0.0
	for _, state := range []string{"free", "fill", "cache", "ring"} {
		waiting += n.sum("umem_frames", "state", state)
	}
	return waiting == total
}

// A port that is deleted under load takes nothing with it but the frames that
// were on its ring. It is said, the daemon is not ready any more, and as no wire
// is left it ends with an error, for the service manager to start it again.
func TestIntegrationDeletedPortIsSaidAndAccountedFor(t *testing.T) {
	r := newRig(t, netlab.VethOptions{})
	r.start()
	stop := r.load()
	labtest.WaitFor(t, "traffic", func() bool { return r.scrape().sum("port_transmit_packets_total", "port", "r1") > 0 })
	if err := r.router.Delete("r1"); err != nil {
		t.Fatal(err)
	}
	err := r.daemon.Wait(labtest.Context(t))
	stop()
	log := r.daemon.Log()
	if err == nil || !strings.Contains(log, "the device is gone") || !strings.Contains(log, "no wire is left: port r1") {
		t.Errorf("ended with %v, log:\n%s", err, log)
	}
	for _, wrong := range []string{"census at exit", "counters at exit", "panic"} {
		if strings.Contains(log, wrong) {
			t.Errorf("%s:\n%s", wrong, log)
		}
	}
	if link, err := r.router.Link("r0"); err != nil || link.Xdp.Attached || link.Promisc != 0 {
		t.Errorf("r0 is not as it was: %+v, %v", link, err)
	}
}
