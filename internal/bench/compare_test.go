// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// script is a contestant that does not forward by itself.
func script(name, text string) Contestant {
	return Contestant{Name: name, Command: netlab.Command{Path: "/bin/sh", Args: []string{"-c", text}}}
}

// kernelBridge forwards by a bridge, which this test program makes as a child
// in the lane's namespace.
func kernelBridge(t *testing.T) Contestant {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	return Contestant{
		Name: "bridge", Ready: "bridge is up",
		Command: netlab.Command{Path: exe, Env: append(os.Environ(), bridgeChild+"=1")},
	}
}

func comparison(progress *bytes.Buffer) Comparison {
	c := Comparison{Rounds: 2, Warm: time.Millisecond, Window: 50 * time.Millisecond, ForwarderCPU: 1}
	if progress != nil {
		c.Progress = progress
	}
	return c
}

func TestIntegrationComparisonMeasuresInTurn(t *testing.T) {
	labtest.Privileged(t)
	a, b := kernelBridge(t), kernelBridge(t)
	b.Name = "other"
	var progress bytes.Buffer
	scores, err := comparison(&progress).Run(labtest.Context(t), a, b)
	must(t, err)
	for _, s := range scores {
		if len(s.Rates) != 2 || len(s.Ratios) != 2 || Median(s.Rates) <= 0 {
			t.Errorf("score %+v, want two rates above 0", s)
		}
	}
	var order []string
	for line := range strings.Lines(progress.String()) {
		order = append(order, strings.Split(line, ": ")[1])
	}
	if got := strings.Join(order, " "); got != "bridge other other bridge" {
		t.Errorf("order %q, want another first in each round", got)
	}
}

func TestIntegrationComparisonFailsWithAContestantThatDies(t *testing.T) {
	labtest.Privileged(t)
	_, err := comparison(nil).Run(labtest.Context(t), script("mayfly", "echo no luck; exit 1"))
	if err == nil || !strings.Contains(err.Error(), "round 1: mayfly: ") || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("got %v, want the name and the output", err)
	}
}

func TestIntegrationComparisonEndsWithItsContext(t *testing.T) {
	labtest.Privileged(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := comparison(nil).Run(ctx, script("idler", "exec sleep 1000"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestScoresTableHasMedians(t *testing.T) {
	s := Scores{
		{Name: "base", Rates: []float64{1e6, 2e6, 4e6}, Ratios: []float64{1, 1, 1}},
		{Name: "ours", Rates: []float64{2e6, 6e6, 4e6}, Ratios: []float64{2, 3, 1}},
	}
	const want = "" +
		"forwarder  Mpps (min-max)    ratio (min-max)   rounds\n" +
		"base       2.00 (1.00-4.00)  1.00 (1.00-1.00)  3\n" +
		"ours       4.00 (2.00-6.00)  2.00 (1.00-3.00)  3\n"
	if got := s.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if m := Median([]float64{4, 1, 3, 2}); m != 2.5 {
		t.Errorf("median %v, want 2.5", m)
	}
}

func TestIntegrationLaneIsWiredThrough(t *testing.T) {
	labtest.Privileged(t)
	lane, err := NewLane(LaneOptions{Queues: 2})
	must(t, err)
	defer func() { must(t, lane.Close()) }()
	must(t, lane.Dut.AddBridge("br0", InDevice, OutDevice))
	s, err := NewStream(StreamConfig{Src: GenMAC(), Dst: SinkMAC()})
	must(t, err)
	r := newRecorder(t, lane.Sink, SinkDevice, s)
	send := newSender(t, lane.Gen, GenDevice, s)
	// A bridge that has just come up may drop the first frames; a wire would not.
	labtest.WaitFor(t, "a frame to cross the bridge", func() bool {
		must(t, send.Send(t.Context(), 1))
		return report(t, r, s, send.Sent()).Arrived > 0
	})
	if rep := report(t, r, s, send.Sent()); !rep.Intact() {
		t.Error(rep)
	}
	if got := binary.BigEndian.Uint16(GenMAC()); got != 0x0200 {
		t.Errorf("MAC %v is not locally administered", GenMAC())
	}
}
