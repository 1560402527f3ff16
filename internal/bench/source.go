// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/netlab"
)

const (
	// liveFrames is BPF_F_TEST_XDP_LIVE_FRAMES of <linux/bpf.h> (Linux 5.18).
	liveFrames = 1 << 1

	// ticksPerNs is the generator's unit of time: TICKS_PER_NS in live.bpf.c.
	ticksPerNs = 256

	// liveHeaderBytes is Ethernet, IPv4 and UDP: HEADER_BYTES in live.bpf.c.
	liveHeaderBytes = macBytes + typeBytes + ipv4Bytes + udpBytes

	// maxLive bounds the length of a frame, which must fit into one page with
	// the kernel's bookkeeping: 3408 bytes was the most on 6.18, with EINVAL
	// beyond. Less than that leaves room for kernels with larger structures.
	maxLive = 3072

	// stopInterval is the time between two signals that ask the kernel to
	// leave the run. One would do, if it could not come just before the call.
	stopInterval = time.Millisecond
)

// SourceConfig describes what a Source sends.
type SourceConfig struct {
	Src, Dst net.HardwareAddr
	SrcIP    netip.Addr       // zero: 10.77.0.2
	DstIP    netip.Addr       // zero: 10.77.0.3
	Flows    int              // UDP source ports, used in turn; 0 is 1
	Size     func(uint32) int // Fixed or IMIX: the first 12 sizes are repeated; nil: 64
	Rate     float64          // frames a second; 0: as fast as the machine can
	Frames   uint64           // then it goes silent; 0: it goes on until Stop
	CPUs     []int            // where it runs, and with it the receiver's softirq; nil: anywhere
}

// Source has the kernel send UDP frames out of a veth end by itself, several
// million a second. The other end must run NAPI: an XDP program or GRO.
type Source struct {
	ns      *netlab.NS
	cfg     SourceConfig
	ifindex int
	longest int

	program *ebpf.Program
	sent    *ebpf.Variable

	thread   chan int      // the running thread, once
	done     chan struct{} // closed when it has ended; nil before Start
	stopping atomic.Bool
	err      error // why it ended by itself; read after done
}

// NewSource prepares a source on a device of a namespace.
func NewSource(ns *netlab.NS, ifname string, cfg SourceConfig) (*Source, error) {
	s := &Source{ns: ns, cfg: cfg, thread: make(chan int, 1)}
	dev, err := ns.Link(ifname)
	if err == nil {
		s.ifindex = dev.Index
		err = s.load()
	}
	if err != nil {
		return nil, fmt.Errorf("source on %s: %w", ifname, err)
	}
	return s, nil
}

func (s *Source) load() error {
	spec, err := loadLive()
	if err != nil {
		return err
	}
	values, err := s.variables()
	if err != nil {
		return err
	}
	for name, value := range values {
		if err := spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	var objects struct {
		Generate *ebpf.Program  `ebpf:"generate"`
		Sent     *ebpf.Variable `ebpf:"sent"`
	}
	if err := spec.LoadAndAssign(&objects, nil); err != nil {
		return fmt.Errorf("load program: %w", err)
	}
	s.program, s.sent = objects.Generate, objects.Sent
	return nil
}

// variables are the constants the program is loaded with.
func (s *Source) variables() (map[string]any, error) {
	stream, err := NewStream(StreamConfig{Src: s.cfg.Src, Dst: s.cfg.Dst, SrcIP: s.cfg.SrcIP, DstIP: s.cfg.DstIP})
	if err != nil {
		return nil, err
	}
	var header [liveHeaderBytes]byte
	copy(header[:], stream.header)
	ip := header[macBytes+typeBytes:]
	binary.BigEndian.PutUint16(ip[ipv4Bytes:], basePort)
	var interval uint64
	if s.cfg.Rate > 0 {
		interval = uint64(float64(time.Second) * ticksPerNs / s.cfg.Rate)
	}
	sizes, err := s.sizes()
	return map[string]any{
		liveVarHeader:        header,
		liveVarHeaderSum:     wordSum(ip[:ipv4Bytes]),
		liveVarSizes:         sizes,
		liveVarFlows:         uint32(max(s.cfg.Flows, 1)),
		liveVarIntervalTicks: interval,
		liveVarLimit:         s.cfg.Frames,
		liveVarPort:          networkOrder(sinkPort),
	}, err
}

func (s *Source) sizes() (sizes [imixLength]uint16, err error) {
	size := s.cfg.Size
	if size == nil {
		size = Fixed(64)
	}
	for i := range sizes {
		bytes := size(uint32(i))
		if bytes < liveHeaderBytes || bytes > maxLive {
			return sizes, fmt.Errorf("frame size %d: allowed are %d to %d", bytes, liveHeaderBytes, maxLive)
		}
		s.longest = max(s.longest, bytes)
		sizes[i] = uint16(bytes)
	}
	return sizes, nil
}

// networkOrder is a number whose bytes in memory are those of v on the wire.
func networkOrder(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}

// Start lets the frames flow. A source can be started once.
func (s *Source) Start() error {
	if s.done != nil {
		return errors.New("source: already started")
	}
	s.done = make(chan struct{})
	ready := make(chan error, 1)
	netlab.OnOwnThread(func() {
		defer close(s.done)
		err := s.ns.Enter()
		if err == nil {
			err = netlab.PinThread(s.cfg.CPUs)
		}
		s.thread <- unix.Gettid()
		if ready <- err; err == nil {
			s.err = s.run()
		}
	})
	return <-ready
}

// run stays in the kernel until Stop: each call begins and ends with a grace
// period of tens of milliseconds in which nothing is sent, so there is one.
func (s *Source) run() error {
	ctx := struct{ Data, DataEnd, DataMeta, IngressIfindex, RxQueueIndex, EgressIfindex uint32 }{
		DataEnd: uint32(s.longest), IngressIfindex: uint32(s.ifindex),
	}
	_, err := s.program.Run(&ebpf.RunOptions{
		Data:    make([]byte, s.longest),
		Context: ctx,
		Repeat:  math.MaxInt32,
		Flags:   liveFrames,
		//lint:ignore SA1019 an interrupted run is begun again at once, and nothing else tells of the interruption
		Reset: func() {
			if s.stopping.Load() {
				runtime.Goexit() // the goroutine and its thread have no other purpose
			}
		},
	})
	return err
}

// Stop ends the flow and returns when no frame is sent any more.
func (s *Source) Stop() error {
	if s.done == nil {
		return nil
	}
	s.stopping.Store(true)
	tick := time.NewTicker(stopInterval)
	defer tick.Stop()
	thread := <-s.thread
	s.thread <- thread // for the next Stop
	for {
		select {
		case <-s.done:
			return s.err
		case <-tick.C:
			// SIGURG is what the Go runtime itself interrupts threads with. A thread that has just ended needs none.
			_ = unix.Tgkill(unix.Getpid(), thread, unix.SIGURG)
		}
	}
}

// Sent is the number of frames sent so far.
func (s *Source) Sent() (uint64, error) {
	var n uint64
	if err := s.sent.Get(&n); err != nil {
		return 0, fmt.Errorf("source: read counter: %w", err)
	}
	return n, nil
}

// Close stops the source and unloads its program.
func (s *Source) Close() error {
	return errors.Join(s.Stop(), s.program.Close())
}
