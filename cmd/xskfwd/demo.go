// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/xskfwd/xskfwd/internal/config"
	"github.com/xskfwd/xskfwd/internal/demo"
)

const demoText = `Run the daemon between network namespaces made for the purpose, send traffic
through it and show what happens. Nothing of the machine's own network is touched,
and everything is removed in the end. Needs root.

The exit code is 0 only if every frame that was sent has arrived.`

// demoSeconds ends a demo that nobody watches: long enough for a steady rate,
// short enough for a first try in a script.
const demoSeconds = 10

// Bounds of the demo. A minute of the fastest machine sends fewer frames; larger
// numbers are typing mistakes.
const (
	maxDemoFrames = 1_000_000_000
	maxDemoTime   = 24 * time.Hour
)

func demoFlags() []option {
	return []option{
		{
			name: "duration", arg: "TIME", def: "0",
			help:    fmt.Sprintf("how long; 0 = until Ctrl-C on a terminal, %ds otherwise", demoSeconds),
			allowed: fmt.Sprintf("a time with a unit from 0 to %vh, such as 30s", maxDemoTime.Hours()),
		},
		{
			name: "frames", arg: "N", def: "0", unit: "frames",
			help:    "stop after so many frames were sent; 0 = no such limit",
			allowed: fmt.Sprintf("0 to %d", maxDemoFrames),
		},
		{
			name: "rate", arg: "N", def: "0", unit: "frames a second",
			help:    "how fast to send; 0 = as fast as the frames go through",
			allowed: fmt.Sprintf("0 to %d", maxDemoFrames),
		},
		{
			name: "plain", def: "false",
			help: "write a line a second also on a terminal",
			more: "This is how it is done anyway if the output is not a terminal, or if TERM is dumb.",
		},
	}
}

func (e *env) demoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "demo",
		Short:   "show the forwarder at work between namespaces of its own",
		Long:    demoText,
		Example: "  xskfwd demo\n  xskfwd demo --duration 30s --rate 100000 --plain",
		Args:    noArguments(""),
	}
	flags := addFlags(cmd, demoFlags())
	cmd.RunE = func(*cobra.Command, []string) error {
		o, err := e.demoOptions(flags)
		if err != nil {
			return err
		}
		ctx, stop := e.untilSignal(o.Log)
		defer stop()
		return failed(e.needsRoot(e.demo(ctx, o)))
	}
	return cmd
}

func (e *env) demoOptions(flags flagValues) (demo.Options, error) {
	frames, err1 := flags["frames"].count()
	rate, err2 := flags["rate"].count()
	duration, err3 := flags["duration"].duration()
	plain, err4 := flags["plain"].isSet()
	terminal := e.isTerminal(e.stdout)
	if duration == 0 && !terminal {
		duration = demoSeconds * time.Second
	}
	return demo.Options{
		Duration: duration,
		Frames:   frames,
		Rate:     rate,
		Live:     terminal && !plain && e.getenv("TERM") != "dumb",
		Out:      e.stdout,
		Log:      e.logger(config.LogWarn, config.LogText), // info would tear the table
	}, errors.Join(err1, err2, err3, err4)
}

func (f *flagValue) count() (int, error) {
	n, err := strconv.Atoi(f.last())
	if err != nil || n < 0 || n > maxDemoFrames {
		return 0, f.refused()
	}
	return n, nil
}

func (f *flagValue) duration() (time.Duration, error) {
	d, err := time.ParseDuration(f.last())
	if err != nil || d < 0 || d > maxDemoTime {
		return 0, f.refused()
	}
	return d, nil
}

func (f *flagValue) isSet() (bool, error) {
	switch f.last() {
	case "true", "false":
		return f.last() == "true", nil
	}
	return false, f.refused()
}

func (f *flagValue) refused() error {
	allowed := f.option.allowed
	if f.option.arg == "" {
		allowed = "true, false"
	}
	return fmt.Errorf("--%s %q: not possible; allowed: %s", f.option.name, f.last(), allowed)
}
