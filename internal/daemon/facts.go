// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/config"
	"github.com/xskfwd/xskfwd/internal/ethtool"
)

// facts is what the kernel says of a device.
type facts struct {
	ifname   string
	ifindex  int
	mtu      int
	mac      net.HardwareAddr
	driver   string // "" if the device does not say
	rxQueues int
	txQueues int
	adminUp  bool
	up       bool // carrier
	promisc  bool // IFF_PROMISC as an administrator sets it
}

// lookUp asks the kernel about a device by name.
func lookUp(ifname string) (facts, error) {
	link, err := netlink.LinkByName(ifname)
	if err != nil {
		if errors.As(err, new(netlink.LinkNotFoundError)) {
			return facts{}, fmt.Errorf("port %s: no such interface in this network namespace (there is %s)", ifname, others())
		}
		return facts{}, fmt.Errorf("port %s: read link: %w", ifname, err)
	}
	f := factsOf(link)
	f.rxQueues, f.txQueues, err = queueCounts(link)
	if err != nil {
		return facts{}, fmt.Errorf("port %s: %w", ifname, err)
	}
	f.driver, _ = ethtool.Driver(ifname) // a label only
	return f, nil
}

// factsOf takes what a link message says.
func factsOf(link netlink.Link) facts {
	a := link.Attrs()
	return facts{
		ifname: a.Name, ifindex: a.Index, mtu: a.MTU, mac: a.HardwareAddr,
		adminUp: a.RawFlags&unix.IFF_UP != 0,
		up:      a.RawFlags&unix.IFF_LOWER_UP != 0,
		promisc: a.RawFlags&unix.IFF_PROMISC != 0,
	}
}

// queueCounts reads how many queues the device uses now. Drivers without
// channels have as many as were allocated.
func queueCounts(link netlink.Link) (rx, tx int, err error) {
	c, err := ethtool.GetChannels(link.Attrs().Name)
	switch {
	case err == nil && c.RxQueues() > 0:
		return int(c.RxQueues()), max(1, int(c.TxQueues())), nil
	case err == nil || errors.Is(err, unix.EOPNOTSUPP):
		return max(1, link.Attrs().NumRxQueues), max(1, link.Attrs().NumTxQueues), nil
	default:
		return 0, 0, fmt.Errorf("read queue count: %w", err)
	}
}

// others lists the interfaces a port could have been.
func others() string {
	links, err := netlink.LinkList()
	if err != nil {
		return "no list of them: " + err.Error()
	}
	var names []string
	for _, l := range links {
		if l.Attrs().Flags&net.FlagLoopback == 0 {
			names = append(names, l.Attrs().Name)
		}
	}
	if len(names) == 0 {
		return "none but loopback"
	}
	return strings.Join(names, ", ")
}

// served says which queues of the device the port forwards.
func served(p config.Port, f facts) ([]int, error) {
	if p.Queues == nil {
		all := make([]int, f.rxQueues)
		for i := range all {
			all[i] = i
		}
		return all, nil
	}
	for _, q := range p.Queues {
		if q >= f.rxQueues {
			return nil, fmt.Errorf("port %s: queue %d: the device has %d RX queue(s), 0 to %d (ethtool -l %s)",
				p.Name, q, f.rxQueues, f.rxQueues-1, p.Name)
		}
	}
	return p.Queues, nil
}
