// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// untilSignal returns a context that ends with the first signal to stop. A second
// one ends the process, for whoever cannot wait: the XDP programs then stay on
// the ports, as after a kill. stop ends the watch.
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
			log.Info("stopping", "signal", s)
			cancel()
		case <-done:
			return
		}
		select {
		case s := <-signals:
			fmt.Fprintf(e.stderr, "xskfwd: second signal (%v): exit without cleaning up\n", s)
			e.exit(exitFailure)
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}
