// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// System calls that are interrupted all the time, and a garbage collector that
// stops the world all the time, make no message and lose no frame but, where the
// CPUs do not suffice for all that, a few at a full ring, which are counted.
func TestIntegrationInterruptedSystemCallsLoseNothing(t *testing.T) {
	r := newRig(t, netlab.VethOptions{})
	r.env = append(r.env, "GOGC=1", "GODEBUG=gcstoptheworld=1")
	r.start("--poll", "interrupt")
	quiet := strings.Count(r.daemon.Log(), "\n")
	stop := r.interrupt()
	flows := []*flow{r.forth(bench.StreamConfig{Flows: 4, Size: bench.IMIX}), r.back(bench.StreamConfig{Flows: 4})}
	sent := make(chan error, len(flows))
	for _, f := range flows {
		go func() { sent <- f.sender.SendPaced(labtest.Context(t), 20_000, 5_000) }()
	}
	for range flows {
		if err := <-sent; err != nil {
			t.Error(err)
		}
	}
	flows[0].send(1) // alone, with the timer to bring its page home
	for i, f := range flows {
		in, out := []string{"r0", "r1"}[i], []string{"r1", "r0"}[i]
		labtest.WaitFor(t, "frames from "+in+" to arrive or be counted", func() bool {
			n, report := r.scrape(), f.report()
			lost := n.sum("port_receive_drops_total", "port", in) + n.sum("port_transmit_drops_total", "port", out)
			return float64(report.Missing) == lost
		})
		if report := f.report(); !report.Intact() || 100*report.Missing > report.Sent {
			t.Errorf("%s -> %s: %s", in, out, report)
		}
	}
	if signals := stop(); signals < 1000 {
		t.Errorf("only %d signals were sent", signals)
	}
	if lines := strings.Count(r.daemon.Log(), "\n"); lines != quiet {
		t.Errorf("%d lines were logged:\n%s", lines-quiet, r.daemon.Log())
	}
	r.stop()
}

// interrupt sends the signal by which Go preempts its threads, over and over,
// until stop is called.
func (r *rig) interrupt() (stop func() (signals int)) {
	ctx, cancel := context.WithCancel(r.t.Context())
	done, signals := make(chan struct{}), 0
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; signals++ {
			_ = r.daemon.Signal(unix.SIGURG) // an ended daemon shows elsewhere
		}
	}()
	return func() int {
		cancel()
		<-done
		return signals
	}
}
