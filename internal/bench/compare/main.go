// SPDX-License-Identifier: Apache-2.0

// Command compare measures forwarders against each other: on a lane of its own
// for each, in alternating rounds, with the median of the per-round ratios as
// the result. A contestant is NAME=COMMAND LINE; the command must forward from
// dut0 to dut1. The first is what the others are measured by.
//
//	compare -rounds 7 'l2fwd=bin/l2fwd -inlink dut0 -outlink dut1' \
//	    'xskfwd=bin/xskfwd run -p dut0 -p dut1 --wire dut0=dut1'
//
// Needs root, and two CPUs with nothing else to do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	c := bench.Comparison{Flows: 1, GeneratorCPU: 0, ForwarderCPU: 1, Progress: os.Stderr}
	flags.IntVar(&c.Rounds, "rounds", 7, "`rounds`; single rounds scatter by 15-20%")
	flags.DurationVar(&c.Warm, "warm", time.Second, "`time` before the measurement")
	flags.DurationVar(&c.Window, "window", 3*time.Second, "`time` of the measurement")
	size := flags.String("size", "64", "frame `bytes` without FCS, or imix")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if c.Size, err = sizeOf(*size); err != nil {
		return err
	}
	contestants, err := contestantsOf(flags.Args())
	if err != nil {
		return err
	}
	scores, err := c.Run(ctx, contestants...)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "%s bytes, split placement, %d rounds of %v, ratio to %s:\n%s", *size, c.Rounds, c.Window, contestants[0].Name, scores)
	return nil
}

func sizeOf(text string) (func(uint32) int, error) {
	if text == "imix" {
		return bench.IMIX, nil
	}
	var bytes int
	if _, err := fmt.Sscanf(text, "%d", &bytes); err != nil || bytes < 60 || bytes > 1514 {
		return nil, fmt.Errorf("-size %q: allowed: 60 to 1514, imix", text)
	}
	return bench.Fixed(bytes), nil
}

func contestantsOf(args []string) ([]bench.Contestant, error) {
	if len(args) == 0 {
		return nil, errors.New("no contestants; each is NAME=COMMAND LINE")
	}
	var all []bench.Contestant
	for _, arg := range args {
		name, line, ok := strings.Cut(arg, "=")
		words := strings.Fields(line)
		if !ok || len(words) == 0 {
			return nil, fmt.Errorf("contestant %q: want NAME=COMMAND LINE", arg)
		}
		all = append(all, bench.Contestant{Name: name, Command: netlab.Command{Path: words[0], Args: words[1:]}, Sink: bench.SinkSKB})
	}
	return all, nil
}
