// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"time"

	"github.com/xskfwd/xskfwd/internal/capability"
	"github.com/xskfwd/xskfwd/internal/config"
	"github.com/xskfwd/xskfwd/internal/datapath"
)

// daemon is one run of the forwarder.
type daemon struct {
	cfg   *config.Config
	log   *slog.Logger
	host  hostState
	ports []*port
	wires [][2]int
	plane *plane
	hooks []*hook
	obs   *observer

	service service
	started bool // start has succeeded
}

// Run forwards until ctx is done or something fails that it cannot live with.
// It returns nil after a stop that was asked for and left nothing behind.
func Run(ctx context.Context, cfg *config.Config, log *slog.Logger) (err error) {
	if err := capability.Check(); err != nil {
		return err
	}
	d := &daemon{cfg: cfg, log: log, host: hostState{dir: stateDir()}, service: newService(log)}
	leaveRoomForWorkers(cfg)

	d.obs, err = startObserver(cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.obs.close()) }()

	if err := d.start(ctx); err != nil {
		return errors.Join(err, d.stop())
	}
	select {
	case <-ctx.Done():
		return d.stop() // told to stop before it was up
	case err := <-d.plane.failed:
		return errors.Join(err, d.stop())
	default:
	}
	d.started = true
	d.obs.serving(d)
	log.Info("forwarding", "wires", wireNames(cfg), "workers", len(d.plane.workers))
	d.service.ready("forwarding " + wireNames(cfg))
	err = d.watch(ctx)
	d.service.stopping()
	d.obs.stopping()
	return errors.Join(err, d.stop())
}

// leaveRoomForWorkers lets the control plane have a P of its own however few
// CPUs there are: a worker that spins holds one for as long as it likes.
func leaveRoomForWorkers(cfg *config.Config) {
	const spare = 2 // one for the control plane, one for the garbage collector
	workers := cfg.WorkerCount(config.MaxQueues, runtime.NumCPU())
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), workers+spare))
}

// start brings the ports up in the order in which nothing can be lost: whoever
// takes frames is there before the program that sends them. If ctx ends it goes
// no further, which is no error.
func (d *daemon) start(ctx context.Context) error {
	if err := d.resolve(); err != nil {
		return err
	}
	var err error
	if d.plane, err = openPlane(d.cfg, d.log, d.ports, d.wires); err != nil {
		return err
	}
	d.plane.start()
	if ctx.Err() != nil {
		return nil
	}
	return d.hookPorts()
}

// resolve looks the ports up and joins them to wires.
func (d *daemon) resolve() error {
	index := map[string]int{}
	var errs []error
	for i, c := range d.cfg.Ports {
		f, err := lookUp(c.Name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		queues, err := served(c, f)
		errs = append(errs, err)
		p := &port{name: c.Name, facts: f, queues: queues}
		p.maxBytes.Store(datapath.MaxFrameBytes(f.mtu))
		d.ports = append(d.ports, p)
		index[c.Name] = i
		d.warnOfLimits(p)
		d.warnOfOffloads(p)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, w := range d.cfg.Wires {
		a, b := index[w.A], index[w.B]
		d.ports[a].partner, d.ports[b].partner = d.ports[b], d.ports[a]
		d.wires = append(d.wires, [2]int{a, b})
	}
	return nil
}

// watch follows the devices until ctx is done or a worker fails.
func (d *daemon) watch(ctx context.Context) error {
	const look = time.Second
	tick := time.NewTicker(look)
	defer tick.Stop()
	defer d.service.feed(d.plane)()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-d.plane.failed:
			return err
		case <-tick.C:
			if err := d.followLinks(); err != nil {
				return err
			}
		}
	}
}

// stop takes down what start has brought up, in reverse, with frames that are on
// their way sent first.
func (d *daemon) stop() error {
	var errs []error
	for _, h := range d.hooks {
		errs = append(errs, h.leave(d.onExit(h)))
	}
	if d.plane != nil {
		if left := d.plane.drain(context.Background()); left > 0 {
			d.log.Warn("frames were still on their way at the stop", "frames", left)
		}
		d.plane.stop()
		if err := d.plane.census(); err != nil {
			errs = append(errs, fmt.Errorf("census at exit: %w", err))
		}
		if final := d.obs.last(d); final != nil {
			errs = append(errs, fmt.Errorf("counters at exit: %w", final))
		}
		errs = append(errs, d.plane.close())
	}
	for _, h := range d.hooks {
		errs = append(errs, h.close())
	}
	return errors.Join(errs...)
}

// onExit says what is left on a port. A start that failed leaves it as it was:
// with a program that joins the wire in the kernel only if one was there before,
// for half a wire is worse than none.
func (d *daemon) onExit(h *hook) config.OnExit {
	switch {
	case d.started:
		return d.cfg.OnExit
	case h.prog.Adopted():
		return config.ExitKeep
	default:
		return config.ExitDetach
	}
}

func wireNames(cfg *config.Config) string {
	var names []string
	for _, w := range cfg.Wires {
		names = append(names, w.String())
	}
	return strings.Join(names, " ")
}
