// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"

	"github.com/vishvananda/netlink"

	"github.com/xskfwd/xskfwd/internal/datapath"
)

// followLinks reads the devices again: an MTU that was changed bounds what may
// leave from now on, and status shows what is. It returns an error when no wire
// is left that could forward.
func (d *daemon) followLinks() error {
	for _, p := range d.ports {
		if p.gone {
			continue
		}
		link, err := netlink.LinkByIndex(p.facts.ifindex)
		if errors.As(err, new(netlink.LinkNotFoundError)) || d.plane.refusedAsGone(p) {
			d.loseDevice(p)
			continue
		}
		if err != nil {
			d.log.Warn("link cannot be read", "port", p.name, "err", err)
			continue
		}
		d.noteLink(p, factsOf(link))
	}
	return d.obs.lost(d.ports, d.wires)
}

// refusedAsGone says whether the kernel has told a transmitter that the device
// behind a port is not the one its sockets were bound to any more. A device that
// was deleted and made again may have the name and the number of the old one.
func (p *plane) refusedAsGone(of *port) bool {
	cuts := p.cuts()
	for _, u := range of.units {
		for i := range cuts {
			if cuts[i].Egress == u.queue.Tx() && cuts[i].Counters.Kicks.Gone > 0 ||
				cuts[i].Tx == u.queue.Tx() && cuts[i].Counters.Retries.Gone > 0 {
				return true
			}
		}
	}
	return false
}

// loseDevice marks a port whose device is gone for good: deleted, or in another
// network namespace. Its sockets can never be bound again.
func (d *daemon) loseDevice(p *port) {
	d.obs.mu.Lock()
	p.gone, p.facts.up, p.facts.adminUp = true, false, false
	d.obs.mu.Unlock()
	d.log.Error("the device is gone, deleted or moved to another network namespace: the wire is dead until xskfwd is restarted",
		"port", p.name, "ifindex", p.facts.ifindex, "partner", p.partner.name)
}

// noteLink takes over what changed, and says so.
func (d *daemon) noteLink(p *port, now facts) {
	d.obs.mu.Lock()
	before := p.facts
	p.facts.ifname, p.facts.mtu, p.facts.adminUp, p.facts.up = now.ifname, now.mtu, now.adminUp, now.up
	d.obs.mu.Unlock()
	if before.adminUp != now.adminUp || before.up != now.up {
		d.log.Info("link changed", "port", p.name, "admin_up", now.adminUp, "carrier", now.up)
	}
	if before.ifname != now.ifname {
		d.log.Info("interface renamed", "port", p.name, "was", before.ifname, "is", now.ifname)
	}
	if before.mtu != now.mtu {
		p.maxBytes.Store(datapath.MaxFrameBytes(now.mtu))
		d.log.Info("mtu changed", "port", p.name, "was", before.mtu, "is", now.mtu)
		d.warnOfLimits(p)
	}
}

// hookOf is the program on a port, nil while there is none.
func (d *daemon) hookOf(p *port) *hook {
	for _, h := range d.hooks {
		if h.port == p {
			return h
		}
	}
	return nil
}
