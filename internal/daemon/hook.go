// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"log/slog"
	"sync"

	"github.com/xskfwd/xskfwd/bpf"
	"github.com/xskfwd/xskfwd/internal/config"
	"github.com/xskfwd/xskfwd/internal/metrics"
)

// hook is the redirect program on one port.
type hook struct {
	port *port
	prog *bpf.Port
	host hostState
	log  *slog.Logger
	pins bool // the program outlives us if we leave it
	// promisc says that we have made the port promiscuous.
	promisc bool

	// mu keeps scrapes off a program that is being taken down.
	mu   sync.Mutex
	gone bool                  // guarded by mu
	mode bpf.Mode              // guarded by mu
	last metrics.XDPStatistics // guarded by mu
}

// hookPorts loads the redirect program for every port, tells it the sockets,
// and attaches it last.
func (d *daemon) hookPorts() error {
	root := d.pinRoot()
	for _, p := range d.ports {
		h, err := d.hookPort(p, root)
		if h != nil {
			d.hooks = append(d.hooks, h)
		}
		if err != nil {
			return err
		}
	}
	for _, h := range d.hooks {
		if err := h.attach(); err != nil {
			return err
		}
		d.log.Info("program attached", "port", h.port.name, "mode", h.prog.Mode(), "adopted", h.prog.Adopted(), "pinned", h.pins)
		h.warnOfMode()
	}
	for _, h := range d.hooks { // only now, when both ends of each wire have their program
		if why := h.prog.FailToWireWarning(); why != "" {
			d.log.Warn("fail-to-wire would lose frames", "port", h.port.name, "why", why)
		}
	}
	return nil
}

// warnOfMode says what generic mode means, however it came to that.
func (h *hook) warnOfMode() {
	if h.prog.Mode() != bpf.Generic {
		return
	}
	what, why := "generic mode is used", h.prog.Fallback() // with its own cure if native was not refused
	switch {
	case h.prog.NativeRefused():
		what = "native XDP refused, generic mode is used"
	case why == "":
		why = "--xdp generic"
	}
	h.log.Warn(what+": it is slower, and packets larger than a chunk, made by GRO or sent with TSO over a veth, are lost",
		"port", h.port.name, "why", why,
		"cure", "ethtool -K "+h.port.facts.ifname+" gro off lro off, and tso off gso off on a veth's other end")
}

// pinRoot finds the place for pins, and says what it means when there is none.
func (d *daemon) pinRoot() string {
	dir, survives, why, err := bpf.PinRoot(true)
	if err != nil {
		why = err.Error()
	}
	if err != nil || dir == "" || !survives {
		d.log.Warn("fail-to-wire ends with this process: pins cannot outlive it", "why", why)
		return ""
	}
	return dir
}

// hookPort loads the program and registers the sockets. The hook is returned
// with an error too, so that it can be closed.
func (d *daemon) hookPort(p *port, root string) (*hook, error) {
	dir := ""
	if root != "" {
		var err error
		if dir, err = bpf.PortDir(root, p.facts.ifname); err != nil {
			return nil, err
		}
	}
	o := bpf.Options{
		Ifindex: p.facts.ifindex, Ifname: p.facts.ifname, Queues: p.facts.rxQueues,
		Mode: bpf.Mode(d.cfg.XDP), Partner: p.partner.facts.ifindex, PinDir: dir, Replace: d.cfg.Replace,
	}
	prog, err := bpf.Load(o)
	if errors.Is(err, bpf.ErrNoPins) {
		d.log.Warn("fail-to-wire ends with this process: the program cannot be pinned", "port", p.name, "why", err)
		o.PinDir = ""
		prog, err = bpf.Load(o)
	}
	if err != nil {
		return nil, err
	}
	h := &hook{port: p, prog: prog, host: d.host, log: d.log, pins: o.PinDir != ""}
	for _, u := range p.units {
		if err := prog.Register(u.number, u.sock.FD()); err != nil {
			return h, err
		}
	}
	return h, nil
}

// attach makes the port promiscuous, since a wire carries frames for others, and
// attaches the program.
func (h *hook) attach() error {
	var err error
	h.promisc, err = h.host.makePromiscuous(h.port.facts)
	if errors.Is(err, errNoNote) {
		h.log.Warn("the port is made promiscuous", "err", err, "cure", "make "+h.host.dir+" writable")
	} else if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.prog.Attach()
}

// leave stops the flow of frames to the sockets. The program is detached, or
// left to send everything to the partner in the kernel.
func (h *hook) leave(on config.OnExit) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if on == config.ExitKeep && h.pins && h.prog.Mode() != "" {
		var errs []error
		for _, number := range h.port.queues {
			errs = append(errs, h.prog.Unregister(number))
		}
		return errors.Join(errs...)
	}
	h.look()
	h.gone = true
	return errors.Join(h.prog.Detach(), h.restorePromisc())
}

// restorePromisc takes promiscuous mode back if it was ours.
func (h *hook) restorePromisc() error {
	if h.port.gone && h.promisc {
		h.log.Warn("if the device was moved it is still promiscuous where it is now", "port", h.port.name,
			"cure", "ip link set "+h.port.facts.ifname+" promisc off, in that network namespace")
	}
	if !h.promisc {
		return nil
	}
	return h.host.clear(h.port.facts.ifindex)
}

// close lets go of the program's descriptors.
func (h *hook) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.look()
	h.gone = true
	return h.prog.Close()
}

// statistics are the program's counters, and after it is gone its last ones.
func (h *hook) statistics() (bpf.Mode, metrics.XDPStatistics) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.look()
	return h.mode, h.last
}

// look reads the counters while there is a program to read them from. Called
// with mu held.
func (h *hook) look() {
	if h.gone {
		return
	}
	h.mode = h.prog.Mode()
	if c, err := h.prog.Counters(); err == nil {
		h.last = metrics.XDPStatistics{Redirected: c.Redirected, Partner: c.Partner, Passed: c.Passed, Orphaned: c.Orphaned}
	}
}
