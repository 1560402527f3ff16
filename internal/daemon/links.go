// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"github.com/vishvananda/netlink"

	"github.com/xskfwd/xskfwd/internal/datapath"
)

// followLinks reads the devices again: an MTU that was changed bounds what may
// leave from now on, and status shows what is.
func (d *daemon) followLinks() {
	for _, p := range d.ports {
		link, err := netlink.LinkByIndex(p.facts.ifindex)
		if err != nil {
			d.noteLink(p, facts{ifindex: p.facts.ifindex, ifname: p.facts.ifname, mtu: p.facts.mtu})
			continue
		}
		d.noteLink(p, factsOf(link))
	}
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
