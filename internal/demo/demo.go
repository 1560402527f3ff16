// SPDX-License-Identifier: Apache-2.0

// Package demo shows the forwarder at work: the real daemon, between network
// namespaces made for the purpose, with numbered frames sent through it both
// ways and every one of them accounted for.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// Options is what a demo is asked for.
type Options struct {
	Duration time.Duration // 0 = until ctx is done, or a stream is at its longest (mostFrames)
	Frames   int           // stop when this many were sent; 0 = no such limit
	Rate     int           // frames a second; 0 = as fast as they go through
	Live     bool          // Out is a terminal: redraw a table instead of writing lines
	Out      io.Writer
	Log      *slog.Logger
}

const (
	// startTimeout bounds the wait for the daemon: a second on a fast machine,
	// and the queues of a former daemon may take two.
	startTimeout = 30 * time.Second
	// arriveTimeout bounds the wait for the last frames, whose way takes
	// milliseconds.
	arriveTimeout = 5 * time.Second
	// stopTimeout bounds the daemon's stop, which takes it a second at most.
	stopTimeout = 10 * time.Second
)

// Run makes the namespaces, starts the daemon, sends, shows, and removes
// everything again. It returns nil only if every frame that was sent has arrived
// once, in order, with the right bytes.
func Run(ctx context.Context, o Options) (err error) {
	l, err := openLab()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	fmt.Fprintln(o.Out, "made network namespaces: demo-a - demo-router - demo-b, joined by two veth pairs")

	fmt.Fprintf(o.Out, "starting in demo-router: xskfwd %s\n", l.commandLine())
	if err := l.startDaemon(ctx); err != nil {
		return err
	}
	t, err := openTraffic(l)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()

	if err := sendAndShow(ctx, o, l, t); err != nil {
		return err
	}
	verdict := t.verdict(o.Out)
	return errors.Join(verdict, l.stopDaemon())
}

// sendAndShow sends until it is time to stop, with a table beside it. Nothing
// sends any more when it returns.
func sendAndShow(ctx context.Context, o Options, l *lab, t *traffic) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.Duration > 0 {
		ctx, cancel = context.WithTimeout(ctx, o.Duration)
		defer cancel()
	}
	sent := make(chan error, 1)
	go func() { sent <- t.send(ctx, o.Frames, o.Rate) }()

	table := newTable(o.Out, o.Live)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-sent:
			table.show(l.scrape())
			return err
		case <-tick.C:
			table.show(l.scrape())
		case <-l.daemon.Done():
			cancel()
			return errors.Join(fmt.Errorf("the daemon ended by itself:\n%s", l.daemon.Log()), <-sent)
		}
	}
}
