// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/xskfwd/xskfwd/internal/netlab"
)

// stopTimeout is how long a contestant may take to end when asked. One that
// takes longer is killed and the measurement counts as failed.
const stopTimeout = 10 * time.Second

// Contestant is a forwarder between dut0 and dut1.
type Contestant struct {
	Name    string
	Command netlab.Command // started in the lane's Dut namespace
	Ready   string         // what it writes when it forwards; "": only the first frame at the sink tells
	Sink    SinkHook       // SinkXDP if it redirects in the kernel
}

// Comparison lets contestants forward in turn, a fresh lane each time. In
// every round each runs once, and the first begins one place later than in
// the round before, so that none has the better hour.
//
// The generator and the forwarder's RX softirq share GeneratorCPU; the
// forwarder and the sink's softirq share ForwarderCPU.
type Comparison struct {
	Rounds       int
	Warm, Window time.Duration // of a measurement
	Size         func(uint32) int
	Flows        int
	Queues       int
	GeneratorCPU int
	ForwarderCPU int
	Progress     io.Writer // gets a line per measurement; nil: nothing does
}

// Score is what one contestant reached.
type Score struct {
	Name   string
	Rates  []float64 // packets a second, by round
	Ratios []float64 // to the first contestant in the same round
}

// Scores are the scores of a comparison, in the order of the contestants.
type Scores []Score

// Run compares the contestants; the first is what the others are measured by.
func (c Comparison) Run(ctx context.Context, contestants ...Contestant) (Scores, error) {
	scores := make(Scores, len(contestants))
	for round := range c.Rounds {
		for i := range contestants {
			at := (i + round) % len(contestants)
			rate, err := c.measure(ctx, contestants[at])
			if err != nil {
				return nil, fmt.Errorf("round %d: %s: %w", round+1, contestants[at].Name, err)
			}
			scores[at].Rates = append(scores[at].Rates, rate)
			c.progress(round, contestants[at].Name, rate)
		}
	}
	for i := range scores {
		scores[i].Name = contestants[i].Name
		for round, rate := range scores[i].Rates {
			scores[i].Ratios = append(scores[i].Ratios, rate/scores[0].Rates[round])
		}
	}
	return scores, nil
}

func (c Comparison) progress(round int, name string, rate float64) {
	if c.Progress != nil {
		fmt.Fprintf(c.Progress, "round %d: %s: %.3f Mpps\n", round+1, name, rate/1e6)
	}
}

// measure lets one contestant forward for a while and returns its rate.
func (c Comparison) measure(ctx context.Context, who Contestant) (rate float64, err error) {
	lane, err := NewLane(LaneOptions{Queues: c.Queues})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, lane.Close()) }()
	sink, err := NewSink(lane.Sink, SinkDevice, who.Sink)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, sink.Close()) }()
	process, err := c.start(ctx, lane, who)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop(process)) }()
	source, err := NewSource(lane.Gen, GenDevice, SourceConfig{
		Src: GenMAC(), Dst: SinkMAC(), Size: c.Size, Flows: c.Flows, CPUs: []int{c.GeneratorCPU},
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	return c.rate(ctx, source, sink, process)
}

func (c Comparison) start(ctx context.Context, lane *Lane, who Contestant) (*netlab.Process, error) {
	command := who.Command
	command.CPUs = []int{c.ForwarderCPU}
	process, err := lane.Dut.Start(command)
	if err != nil || who.Ready == "" {
		return process, err
	}
	if err := process.WaitLog(ctx, who.Ready); err != nil {
		process.Kill()
		return nil, err
	}
	return process, nil
}

// rate measures between two looks at the sink, after the warm-up.
func (c Comparison) rate(ctx context.Context, source *Source, sink *Sink, process *netlab.Process) (float64, error) {
	if err := source.Start(); err != nil {
		return 0, err
	}
	if err := awaitFirst(ctx, sink, process); err != nil {
		return 0, err
	}
	if err := pause(ctx, c.Warm, process); err != nil {
		return 0, err
	}
	before, err := sink.Count()
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := pause(ctx, c.Window, process); err != nil {
		return 0, err
	}
	after, err := sink.Count()
	return float64(after.Packets-before.Packets) / time.Since(start).Seconds(), err
}

func awaitFirst(ctx context.Context, sink *Sink, process *netlab.Process) error {
	err := netlab.WaitFor(ctx, func() (bool, error) {
		select {
		case <-process.Done():
			return false, ended(process)
		default:
		}
		count, err := sink.Count()
		return count.Packets > 0, err
	})
	if err != nil {
		return fmt.Errorf("wait for the first frame: %w", err)
	}
	return nil
}

// pause lets time pass while the contestant works.
func pause(ctx context.Context, d time.Duration, process *netlab.Process) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-process.Done():
		return ended(process)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func ended(p *netlab.Process) error {
	return fmt.Errorf("it ended; it wrote:\n%s", p.Log())
}

// stop ends a contestant. Its exit status is its own affair: most forwarders
// report a signal as a failure.
func stop(p *netlab.Process) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := p.Stop(ctx); ctx.Err() != nil {
		return err
	}
	return nil
}

// String is a table of medians, with the extremes in parentheses.
func (s Scores) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "forwarder\tMpps (min-max)\tratio (min-max)\trounds")
	for _, score := range s {
		rates := make([]float64, len(score.Rates))
		for i, r := range score.Rates {
			rates[i] = r / 1e6
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", score.Name, spread(rates), spread(score.Ratios), len(rates))
	}
	w.Flush()
	return b.String()
}

func spread(values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f (%.2f-%.2f)", Median(values), slices.Min(values), slices.Max(values))
}

// Median is the middle value, or the mean of the two in the middle; 0 of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	middle := len(v) / 2
	if len(v)%2 == 1 {
		return v[middle]
	}
	return (v[middle-1] + v[middle]) / 2
}
