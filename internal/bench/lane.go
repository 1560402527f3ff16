// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"net"

	"github.com/xskfwd/xskfwd/internal/netlab"
)

// Devices of a Lane: gen0 -- dut0 [forwarder] dut1 -- sink0.
const (
	GenDevice  = "gen0"
	InDevice   = "dut0"
	OutDevice  = "dut1"
	SinkDevice = "sink0"
)

// Lane is a generator, a device under test and a sink, in a namespace each,
// joined by two veth pairs.
type Lane struct {
	Gen, Dut, Sink *netlab.NS
	opts           LaneOptions
}

// LaneOptions describe a lane.
type LaneOptions struct {
	Prefix string // names the namespaces Prefix-gen, -dut and -sink; "": anonymous
	Queues int    // of each device; 0 is 1
	MTU    int    // of each device; 0 is the kernel's default
	GRO    bool   // at gen0 and sink0, so that they take redirected frames
}

// NewLane makes a lane. Nothing forwards on it yet.
func NewLane(opts LaneOptions) (*Lane, error) {
	l := &Lane{opts: opts}
	err := l.build()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lane: %w", err), l.Close())
	}
	return l, nil
}

func (l *Lane) build() (err error) {
	for _, n := range []struct {
		ns   **netlab.NS
		name string
	}{{&l.Gen, "gen"}, {&l.Dut, "dut"}, {&l.Sink, "sink"}} {
		name := ""
		if l.opts.Prefix != "" {
			name = l.opts.Prefix + "-" + n.name
		}
		if *n.ns, err = netlab.NewNS(name); err != nil {
			return err
		}
	}
	veth := netlab.VethOptions{Queues: l.opts.Queues, MTU: l.opts.MTU}
	veth.A, veth.B = netlab.End{MAC: GenMAC(), GRO: l.opts.GRO}, netlab.End{MAC: laneMAC(2)}
	if err := netlab.Veth(l.Gen, GenDevice, l.Dut, InDevice, veth); err != nil {
		return err
	}
	veth.A, veth.B = netlab.End{MAC: laneMAC(3)}, netlab.End{MAC: SinkMAC(), GRO: l.opts.GRO}
	return netlab.Veth(l.Dut, OutDevice, l.Sink, SinkDevice, veth)
}

// GenMAC is the address of gen0.
func GenMAC() net.HardwareAddr { return laneMAC(1) }

// SinkMAC is the address of sink0.
func SinkMAC() net.HardwareAddr { return laneMAC(4) }

func laneMAC(n byte) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 0, n} }

// Close removes the lane.
func (l *Lane) Close() error {
	var errs []error
	for _, ns := range []*netlab.NS{l.Gen, l.Dut, l.Sink} {
		if ns != nil {
			errs = append(errs, ns.Close())
		}
	}
	return errors.Join(errs...)
}
