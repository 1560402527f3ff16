// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/xskfwd/xskfwd/internal/config"
	"github.com/xskfwd/xskfwd/internal/metrics"
)

const (
	// listenRetry is how often a metrics address that is taken is tried again.
	listenRetry = 10 * time.Second
	// closeTimeout is how long a scrape that is being answered may hold up a stop.
	closeTimeout = time.Second
)

// observer answers scrapes from before the ports are up until after they are
// down. It keeps the control plane's side of every counter.
type observer struct {
	server  *metrics.Server // nil: metrics are off
	started time.Time

	mu    sync.Mutex
	d     *daemon          // nil before start and after stop; guarded by mu
	final metrics.Snapshot // what is served while d is nil; guarded by mu
	phase error            // why the daemon is not ready; guarded by mu
}

var errStarting = errors.New("the ports are not up yet")

// startObserver listens, if metrics are on. An address that somebody else has
// is no reason not to forward; it is tried again.
func startObserver(cfg *config.Config, log *slog.Logger) (*observer, error) {
	o := &observer{started: time.Now(), phase: errStarting}
	o.final = metrics.Snapshot{Daemon: o.daemonFacts()}
	if cfg.Metrics == "" {
		return o, nil
	}
	reg := prometheus.NewRegistry()
	if err := metrics.Register(reg, o.snapshot); err != nil {
		return nil, err
	}
	o.server = metrics.NewServer(metrics.ServerConfig{Addr: cfg.Metrics, Gatherer: reg, Ready: o.ready, Log: log})
	switch err := o.server.Listen(); {
	case err == nil:
		log.Info("metrics", "url", fmt.Sprintf("http://%s/metrics", o.server.Addr()))
	case errors.Is(err, metrics.ErrAddrUnavailable):
		log.Warn("no metrics for now; forwarding goes on", "err", err, "retry", listenRetry)
		o.server.ListenLater(listenRetry)
	default:
		return nil, err
	}
	return o, nil
}

// serving makes scrapes see the daemon's ports.
func (o *observer) serving(d *daemon) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.d, o.phase = d, nil
}

// lost makes the daemon not ready if a wire has lost a device. It returns an
// error if none is left: then a restart can lose nothing more, and is the cure.
func (o *observer) lost(ports []*port, wires [][2]int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	dead := 0
	for _, w := range wires {
		for _, end := range w {
			if ports[end].gone {
				o.phase = fmt.Errorf("port %s: its device is gone", ports[end].name)
				dead++
				break
			}
		}
	}
	if dead == len(wires) {
		return fmt.Errorf("no wire is left: %w", o.phase)
	}
	return nil
}

// stopping makes the daemon not ready any more. Counters go on.
func (o *observer) stopping() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.phase = errors.New("the daemon is stopping")
}

// last keeps what the counters say at the end, for scrapes that come while the
// packet path is taken down, and checks that they agree with each other.
func (o *observer) last(d *daemon) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.final = d.snapshot(o.daemonFacts())
	o.d = nil
	return o.final.Check()
}

func (o *observer) snapshot() metrics.Snapshot {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.d == nil {
		return o.final
	}
	return o.d.snapshot(o.daemonFacts())
}

func (o *observer) ready() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.phase
}

func (o *observer) close() error {
	if o.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return o.server.Close(ctx)
}
