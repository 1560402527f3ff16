// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// Scrapes as fast as they are answered hold up no frame, and between two of them
// no counter goes back, in traffic and when it is over.
func TestIntegrationScrapesHoldUpNothing(t *testing.T) {
	r := newRig(t, netlab.VethOptions{Queues: 2})
	r.start("--workers", "2")
	flows := []*flow{r.forth(bench.StreamConfig{Flows: 16, Size: bench.IMIX}), r.back(bench.StreamConfig{Flows: 16})}
	sent := make(chan error, len(flows))
	for _, f := range flows {
		go func() { sent <- f.sender.SendPaced(labtest.Context(t), 30_000, 10_000) }()
	}
	before, scrapes := r.scrape(), 1
	for open := len(flows); open > 0; scrapes++ {
		now := r.scrape()
		now.noneBehind(t, before)
		before = now
		select {
		case err := <-sent:
			open--
			if err != nil {
				t.Error(err)
			}
		default:
		}
	}
	for _, f := range flows {
		f.arrive()
		f.complete()
	}
	if n := r.settled(); n.noneBehind(t, before) < 50 {
		t.Errorf("only %d counters were compared", n.noneBehind(t, before))
	}
	t.Logf("%d scrapes", scrapes)
	r.stop()
}

// noneBehind fails for each counter that is behind an earlier scrape, or gone,
// and says how many there are.
func (n numbers) noneBehind(t *testing.T, earlier numbers) (counters int) {
	t.Helper()
	for name, family := range earlier {
		if family.GetType() != dto.MetricType_COUNTER {
			continue
		}
		for _, was := range family.GetMetric() {
			counters++
			now := n.value(name, was)
			if now < was.GetCounter().GetValue() {
				t.Errorf("%s%v went from %v to %v", name, was.GetLabel(), was.GetCounter().GetValue(), now)
			}
		}
	}
	return counters
}
