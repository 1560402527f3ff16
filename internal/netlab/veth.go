// SPDX-License-Identifier: Apache-2.0

package netlab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/xskfwd/xskfwd/internal/ethtool"
)

// upTimeout bounds the wait for a new pair to carry frames. The kernel needs
// a work queue turn, milliseconds; a loaded machine needs longer.
const upTimeout = 10 * time.Second

// VethOptions describe a pair. The zero value is a wire: one queue, MTU 1500,
// IPv6 off so that the kernel sends nothing by itself, every offload off so
// that a frame is what it would be on a cable.
type VethOptions struct {
	Queues   int  // RX and TX queues of both ends; 0 is 1
	MTU      int  // both ends; 0 is the kernel's default
	Offloads bool // leave checksum, segmentation and scatter-gather offloads on
	IPv6     bool // leave IPv6 on
	A, B     End
}

// End is what may differ between the ends of a pair.
type End struct {
	MAC      net.HardwareAddr // nil: the kernel's choice
	RxQueues int              // 0: VethOptions.Queues
	TxQueues int              // 0: VethOptions.Queues

	// GRO makes the end run NAPI, without which it drops frames that are
	// redirected to it. An XDP program on it does the same.
	GRO bool
}

// Veth joins two namespaces (or one with itself) by a veth pair, sets both
// ends up and waits until both carry frames.
func Veth(a *NS, aName string, b *NS, bName string, opts VethOptions) error {
	err := addPair(a, aName, b, bName, opts)
	if err == nil {
		err = errors.Join(a.prepare(aName, opts, opts.A), b.prepare(bName, opts, opts.B))
	}
	if err == nil {
		// Only now: when an end is set up the kernel looks whether the other
		// wants GRO, and if not refuses to redirect frames to it ever after.
		err = errors.Join(a.SetUp(aName), b.SetUp(bName))
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), upTimeout)
		defer cancel()
		err = errors.Join(a.WaitUp(ctx, aName), b.WaitUp(ctx, bName))
	}
	if err != nil {
		return fmt.Errorf("veth %s-%s: %w", aName, bName, err)
	}
	return nil
}

func addPair(a *NS, aName string, b *NS, bName string, opts VethOptions) error {
	b.mu.RLock() // b's descriptor must stay valid while the kernel reads it
	defer b.mu.RUnlock()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = aName
	attrs.MTU = opts.MTU
	attrs.HardwareAddr = opts.A.MAC
	attrs.NumTxQueues = opts.queues(opts.A.TxQueues)
	attrs.NumRxQueues = opts.queues(opts.A.RxQueues)
	pair := netlink.NewVeth(attrs)
	pair.PeerName = bName
	pair.PeerHardwareAddr = opts.B.MAC
	pair.PeerNamespace = netlink.NsFd(b.fd)
	pair.PeerNumTxQueues = uint32(opts.queues(opts.B.TxQueues))
	pair.PeerNumRxQueues = uint32(opts.queues(opts.B.RxQueues))
	return a.Do(func() error { return netlink.LinkAdd(pair) })
}

// queues is the count for one end and direction: its own, else the pair's, else 1.
func (o VethOptions) queues(own int) int {
	if own > 0 {
		return own
	}
	return max(o.Queues, 1)
}

// prepare brings one end, still down, into the state the options ask for.
func (ns *NS) prepare(ifname string, opts VethOptions, end End) error {
	return ns.Do(func() error {
		if !opts.IPv6 {
			if err := disableIPv6(ifname); err != nil {
				return err
			}
		}
		if !opts.Offloads {
			if err := offloadsOff(ifname); err != nil {
				return err
			}
		}
		return setFeatures(ifname, map[string]bool{ethtool.GRO: end.GRO})
	})
}

// disableIPv6 stops the kernel from sending neighbour and multicast reports
// of its own. A kernel without IPv6 has no such file.
func disableIPv6(ifname string) error {
	err := os.WriteFile("/proc/sys/net/ipv6/conf/"+ifname+"/disable_ipv6", []byte("1"), 0)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("device %s: disable IPv6: %w", ifname, err)
	}
	return nil
}

// offloadsOff turns off every offload that lets a frame on the wire differ
// from what a cable would carry.
func offloadsOff(ifname string) error {
	features, err := ethtool.GetFeatures(ifname)
	if err != nil {
		return err
	}
	want := map[string]bool{}
	for name, f := range features {
		if f.Changeable && changesFrames(name) {
			want[name] = false
		}
	}
	return setFeatures(ifname, want)
}

func changesFrames(feature string) bool {
	switch feature {
	case ethtool.RxChecksum, ethtool.LRO, ethtool.ScatterGather, "tx-scatter-gather-fraglist", "tx-gso-list", "rx-gro-list", "rx-udp-gro-forwarding":
		return true
	}
	return strings.HasPrefix(feature, "tx-checksum-") || strings.HasSuffix(feature, "-segmentation")
}

func setFeatures(ifname string, want map[string]bool) error {
	refused, err := ethtool.SetFeatures(ifname, want)
	if err == nil && len(refused) > 0 {
		err = fmt.Errorf("device %s: kernel keeps features %s", ifname, strings.Join(refused, ", "))
	}
	return err
}
