// SPDX-License-Identifier: Apache-2.0

package netlab

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// pollInterval is the time between two looks at a condition the kernel does
// not announce to us. Shorter burns CPU the condition may need; longer slows
// every test down.
const pollInterval = 2 * time.Millisecond

// withLink runs f on a device of the namespace; what names the attempt in errors.
func (ns *NS) withLink(ifname, what string, f func(netlink.Link) error) error {
	return ns.Do(func() error {
		link, err := netlink.LinkByName(ifname)
		if err == nil {
			err = f(link)
		}
		if err != nil {
			return fmt.Errorf("device %s: %s: %w", ifname, what, err)
		}
		return nil
	})
}

// Link reads everything the kernel says about a device: index, MAC, MTU,
// flags, promiscuity, XDP program, statistics.
func (ns *NS) Link(ifname string) (*netlink.LinkAttrs, error) {
	var attrs *netlink.LinkAttrs
	err := ns.withLink(ifname, "read", func(l netlink.Link) error {
		attrs = l.Attrs()
		return nil
	})
	return attrs, err
}

// SetUp sets a device up. It carries frames when its peer is up too; see WaitUp.
func (ns *NS) SetUp(ifname string) error {
	return ns.withLink(ifname, "set up", netlink.LinkSetUp)
}

// SetDown sets a device down.
func (ns *NS) SetDown(ifname string) error {
	return ns.withLink(ifname, "set down", netlink.LinkSetDown)
}

// Delete deletes a device, and the other end with it if it is a veth.
func (ns *NS) Delete(ifname string) error {
	return ns.withLink(ifname, "delete", netlink.LinkDel)
}

// SetMTU changes the MTU of a device.
func (ns *NS) SetMTU(ifname string, mtu int) error {
	return ns.withLink(ifname, fmt.Sprintf("set MTU %d", mtu), func(l netlink.Link) error {
		return netlink.LinkSetMTU(l, mtu)
	})
}

// Rename gives a device another name.
func (ns *NS) Rename(ifname, newName string) error {
	return ns.withLink(ifname, "rename to "+newName, func(l netlink.Link) error {
		return netlink.LinkSetName(l, newName)
	})
}

// Move puts a device into another namespace, where it is down.
func (ns *NS) Move(ifname string, to *NS) error {
	to.mu.RLock()
	defer to.mu.RUnlock()
	return ns.withLink(ifname, "move", func(l netlink.Link) error {
		return netlink.LinkSetNsFd(l, to.fd)
	})
}

// SetFeatures turns offloads of a device on and off by their kernel names and
// fails if one is not as asked afterwards.
func (ns *NS) SetFeatures(ifname string, want map[string]bool) error {
	return ns.Do(func() error { return setFeatures(ifname, want) })
}

// AddBridge makes a bridge of devices of the namespace and sets it up.
func (ns *NS) AddBridge(name string, ports ...string) error {
	err := ns.Do(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = name
		return netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs})
	})
	if err != nil {
		return fmt.Errorf("bridge %s: %w", name, err)
	}
	bridge, err := ns.Link(name)
	if err != nil {
		return err
	}
	for _, p := range ports {
		err := ns.withLink(p, "join bridge "+name, func(l netlink.Link) error {
			return netlink.LinkSetMasterByIndex(l, bridge.Index)
		})
		if err != nil {
			return err
		}
	}
	return ns.SetUp(name)
}

// AddAddr gives a device an address. IPv6 addresses skip duplicate address
// detection, so that they are usable at once.
func (ns *NS) AddAddr(ifname string, prefix netip.Prefix) error {
	return ns.withLink(ifname, "add address "+prefix.String(), func(l netlink.Link) error {
		addr := &netlink.Addr{IPNet: ipNet(prefix)}
		if prefix.Addr().Is6() {
			addr.Flags = unix.IFA_F_NODAD
		}
		return netlink.AddrAdd(l, addr)
	})
}

// AddNeigh makes a permanent neighbour entry.
func (ns *NS) AddNeigh(ifname string, ip netip.Addr, mac net.HardwareAddr) error {
	return ns.withLink(ifname, "add neighbour "+ip.String(), func(l netlink.Link) error {
		return netlink.NeighSet(&netlink.Neigh{
			LinkIndex: l.Attrs().Index, IP: ip.AsSlice(), HardwareAddr: mac, State: netlink.NUD_PERMANENT,
		})
	})
}

// AddRoute makes a route by way of a gateway.
func (ns *NS) AddRoute(dst netip.Prefix, via netip.Addr) error {
	err := ns.Do(func() error {
		return netlink.RouteAdd(&netlink.Route{Dst: ipNet(dst), Gw: via.AsSlice()})
	})
	if err != nil {
		return fmt.Errorf("route %v via %v: %w", dst, via, err)
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// WaitUp waits until a device carries frames: set up on both ends and its
// queue discipline in place, which the kernel does in a work queue after the
// second end is set up. Before that, frames sent are silently dropped.
func (ns *NS) WaitUp(ctx context.Context, ifname string) error {
	var state netlink.LinkOperState
	err := WaitFor(ctx, func() (bool, error) {
		attrs, err := ns.Link(ifname)
		if err != nil {
			return false, err
		}
		state = attrs.OperState
		return state == netlink.OperUp, nil
	})
	if err != nil {
		return fmt.Errorf("device %s: wait for link up (state %v): %w", ifname, state, err)
	}
	return nil
}

// WaitFor looks at a condition until it holds, fails, or ctx ends.
func WaitFor(ctx context.Context, condition func() (bool, error)) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if ok, err := condition(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
