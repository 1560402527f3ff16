// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// oneStop is how long after the first signal to stop further ones belong to it:
// timeout(1) signals its child and then the group, shells and service managers
// do alike, microseconds apart. Shorter, and a loaded machine may tear such a
// pair apart; longer, and a person who cannot wait presses Ctrl-C in vain.
const oneStop = time.Second

// untilSignal returns a context that ends with the first signal to stop. Another
// one, oneStop later or more, ends the process, for whoever cannot wait: the XDP
// programs then stay on the ports, as after a kill. stop ends the watch.
func (e *env) untilSignal(log *slog.Logger) (ctx context.Context, stop func()) {
	// The death of whoever reads the log must not end the forwarding.
	signal.Ignore(unix.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		select {
		case s := <-signals:
			first := e.now()
			log.Info("stopping", "signal", s)
			cancel()
			e.untilImpatient(log, first, signals, done)
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}

// untilImpatient ends the process with a signal that is not part of the first one.
func (e *env) untilImpatient(log *slog.Logger, first time.Time, signals <-chan os.Signal, done <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			if e.now().Sub(first) >= oneStop {
				fmt.Fprintf(e.stderr, "xskfwd: second signal (%v): exit without cleaning up\n", s)
				e.exit(exitFailure)
				return
			}
			log.Info("stopping already; a signal that comes later forces the exit", "signal", s, "after", oneStop)
		case <-done:
			return
		}
	}
}
