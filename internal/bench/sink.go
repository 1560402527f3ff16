// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/xskfwd/xskfwd/internal/netlab"
)

// SinkHook is where a Sink takes its frames.
type SinkHook uint8

const (
	// SinkSKB takes frames at tcx: what AF_XDP in copy mode, a bridge or
	// another socket buffer sender delivers. An XDP program there would make
	// the kernel copy each frame first. Linux 6.6.
	SinkSKB SinkHook = iota
	// SinkXDP takes frames at native XDP, which frames that are redirected to
	// the device need to be received at all. It takes the others too.
	SinkXDP
)

// Sink counts the frames of a Source that arrive at a device, and drops them
// before anything else is done with them. Other frames pass. It works on the
// CPU that delivers the frame, which for a veth is the sender's.
type Sink struct {
	counts  *ebpf.Map
	program *ebpf.Program
	link    link.Link
}

// SinkCount is what a Sink has seen.
type SinkCount struct {
	Packets, Bytes uint64
}

// NewSink attaches a sink to a device of a namespace.
func NewSink(ns *netlab.NS, ifname string, hook SinkHook) (*Sink, error) {
	s := &Sink{}
	err := s.load(hook)
	if err == nil {
		err = s.attach(ns, ifname, hook)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sink on %s: %w", ifname, err), s.Close())
	}
	return s, nil
}

func (s *Sink) load(hook SinkHook) error {
	spec, err := loadLive()
	if err != nil {
		return err
	}
	if err := spec.Variables[liveVarPort].Set(networkOrder(sinkPort)); err != nil {
		return err
	}
	name := liveProgSink
	if hook == SinkSKB {
		name = liveProgSinkSkb
	}
	spec.Programs = map[string]*ebpf.ProgramSpec{name: spec.Programs[name]}
	objects, err := ebpf.NewCollection(spec)
	if err != nil {
		return fmt.Errorf("load program: %w", err)
	}
	defer objects.Close()
	s.program, s.counts = objects.DetachProgram(name), objects.DetachMap(liveMapSinkCounts)
	return nil
}

func (s *Sink) attach(ns *netlab.NS, ifname string, hook SinkHook) error {
	dev, err := ns.Link(ifname)
	if err != nil {
		return err
	}
	return ns.Do(func() error {
		if hook == SinkSKB {
			s.link, err = link.AttachTCX(link.TCXOptions{Interface: dev.Index, Program: s.program, Attach: ebpf.AttachTCXIngress})
		} else {
			s.link, err = link.AttachXDP(link.XDPOptions{Interface: dev.Index, Program: s.program, Flags: link.XDPDriverMode})
		}
		return err
	})
}

// Count is what has arrived so far.
func (s *Sink) Count() (SinkCount, error) {
	var perCPU []liveSinkCount
	if err := s.counts.Lookup(uint32(0), &perCPU); err != nil {
		return SinkCount{}, fmt.Errorf("sink: read counters: %w", err)
	}
	var sum SinkCount
	for _, c := range perCPU {
		sum.Packets += c.Packets
		sum.Bytes += c.Bytes
	}
	return sum, nil
}

// Close detaches the sink and unloads its program.
func (s *Sink) Close() error {
	var err error
	if s.link != nil {
		err = s.link.Close()
	}
	return errors.Join(err, s.program.Close(), s.counts.Close())
}
