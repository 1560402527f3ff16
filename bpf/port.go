// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/asavie/xdp"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Mode is how the program hangs on the interface. Auto is a wish only: a port
// that is attached is Native or Generic.
type Mode string

const (
	Auto    Mode = "auto"    // native, and generic where the kernel refuses native
	Native  Mode = "native"  // in the driver, before an skb exists
	Generic Mode = "generic" // in the stack, on an skb: any device, slower
)

// Options describe the port to Load.
type Options struct {
	Ifindex int
	Ifname  string
	Queues  int    // receive queues of the device, whether they get a socket or not
	Mode    Mode   // empty is Auto
	Partner int    // ifindex; 0: frames without a socket go to the kernel
	PinDir  string // of this port alone, as [PortDir] makes it; empty: the program leaves with the process
	Replace bool   // remove whatever XDP program is in the way
}

// Port is the redirect program on one interface, with its maps.
//
// Owner: one goroutine, but for Counters. The caller keeps the Port referenced
// for as long as frames are to flow: an unpinned link is closed with its Go object.
type Port struct {
	opts     Options
	lock     *dirLock // of PinDir; nil without pins
	objects  *redirectObjects
	program  xdp.Program // queue and socket map of objects, as asavie/xdp fills them
	link     link.Link   // nil until attached or found pinned
	linkDir  string      // where link is pinned
	mode     Mode        // of link
	current  bool        // link runs the program in objects
	adopted  bool        // link, maps and all were found pinned
	fallback string      // why the mode is not native
}

// Counters are the verdicts of the program, in frames, summed over all CPUs.
//
// Invariant: Redirected + Partner + Passed is every frame the program has seen.
type Counters struct {
	Redirected uint64 // to the socket of the queue, which may still have refused it
	Partner    uint64 // to the partner port: fail-to-wire, or a queue that was never registered
	Passed     uint64 // to the kernel
	// Orphaned is the part of Partner and Passed that came in on a registered
	// queue: its socket is gone without Unregister. This is the error counter.
	Orphaned uint64
}

// Load brings program and maps into the kernel, or adopts those it finds pinned
// in the same version, under this name of the interface or a former one. Nothing is attached yet, nothing pinned yet. The error
// is [ErrNoPins] when PinDir cannot be made or written, and [ErrInUse] when
// another process has it.
func Load(o Options) (*Port, error) {
	if o.Mode == "" {
		o.Mode = Auto
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	p := &Port{opts: o}
	if err := p.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("port %s: %w", o.Ifname, err), p.Close())
	}
	return p, nil
}

func (o Options) validate() error {
	if o.Ifindex < 1 {
		return fmt.Errorf("port %q: interface index %d, want 1 or more", o.Ifname, o.Ifindex)
	}
	if o.Queues < 1 {
		return fmt.Errorf("port %q: %d receive queues, want 1 or more", o.Ifname, o.Queues)
	}
	if o.Partner < 0 || o.Partner == o.Ifindex {
		return fmt.Errorf("port %q: partner interface index %d, want 0 (none) or another port's", o.Ifname, o.Partner)
	}
	if !slices.Contains([]Mode{Auto, Native, Generic}, o.Mode) {
		return fmt.Errorf("port %q: XDP mode %q, want auto, native or generic", o.Ifname, o.Mode)
	}
	return nil
}

func (p *Port) load() error {
	if p.opts.PinDir != "" {
		lock, err := lockToPin(p.opts.PinDir)
		if err != nil {
			return err
		}
		p.lock = lock
		if err := p.gather(); err != nil {
			return err
		}
		if err := p.readPins(); err != nil {
			return err
		}
	}
	if err := p.fillObjects(); err != nil {
		return err
	}
	p.program = xdp.Program{
		Program: p.objects.XskfwdRedirect,
		Queues:  p.objects.QidconfMap,
		Sockets: p.objects.XsksMap,
	}
	return errors.Join(p.forgetQueues(), p.SetPartner(p.opts.Partner))
}

func (p *Port) fillObjects() (err error) {
	if !p.adopted {
		p.objects, err = loadObjects(p.opts.Queues)
	}
	return err
}

// sizedSpec is the program with its queue maps made for the device.
func sizedSpec(queues int) (*ebpf.CollectionSpec, error) {
	spec, err := loadRedirect()
	if err != nil {
		return nil, err
	}
	spec.Maps[redirectMapQidconfMap].MaxEntries = uint32(queues)
	spec.Maps[redirectMapXsksMap].MaxEntries = uint32(queues)
	return spec, nil
}

func loadObjects(queues int) (*redirectObjects, error) {
	spec, err := sizedSpec(queues)
	if err != nil {
		return nil, err
	}
	objects := new(redirectObjects)
	if err := spec.LoadAndAssign(objects, nil); err != nil {
		return nil, fmt.Errorf("load redirect program%s: %w", loadCure(err), err)
	}
	return objects, nil
}

// forgetQueues clears what a former daemon registered in adopted maps.
func (p *Port) forgetQueues() error {
	if !p.adopted {
		return nil
	}
	for queue := range p.opts.Queues {
		if err := p.Unregister(queue); err != nil {
			return err
		}
	}
	return nil
}

// Register makes the socket fd the taker of the frames of a queue. It must be
// bound to that queue of that interface, or the frames are lost.
func (p *Port) Register(queue, fd int) error {
	if err := p.checkQueue(queue); err != nil {
		return err
	}
	if err := p.program.Register(queue, fd); err != nil {
		return fmt.Errorf("port %s queue %d: register socket: %w", p.opts.Ifname, queue, err)
	}
	return nil
}

// Unregister sends the frames of a queue to the partner again. A queue that is
// not registered is no error.
func (p *Port) Unregister(queue int) error {
	if err := p.checkQueue(queue); err != nil {
		return err
	}
	err := p.program.Unregister(queue)
	if errors.Is(err, ebpf.ErrKeyNotExist) { // it stopped at the queue map
		err = p.program.Sockets.Delete(uint32(queue))
	}
	if err != nil {
		return fmt.Errorf("port %s queue %d: unregister socket: %w", p.opts.Ifname, queue, err)
	}
	return nil
}

func (p *Port) checkQueue(queue int) error {
	if p.objects == nil {
		return p.closed()
	}
	if queue < 0 || queue >= p.opts.Queues {
		return fmt.Errorf("port %s: no queue %d, the device has %d (0-%d)", p.opts.Ifname, queue, p.opts.Queues, p.opts.Queues-1)
	}
	return nil
}

func (p *Port) closed() error { return fmt.Errorf("port %s: %w", p.opts.Ifname, os.ErrClosed) }

// SetPartner changes where frames without a socket go, also while attached:
// the port with that ifindex, or the kernel when it is 0. When the partner
// device disappears the kernel sets it to 0 by itself.
func (p *Port) SetPartner(ifindex int) error {
	if p.objects == nil {
		return p.closed()
	}
	slot := uint32(0)
	var err error
	if ifindex == 0 {
		err = p.objects.PartnerMap.Delete(slot)
	} else {
		err = p.objects.PartnerMap.Put(slot, uint32(ifindex))
	}
	if err != nil {
		return fmt.Errorf("port %s: set partner to interface index %d: %w", p.opts.Ifname, ifindex, err)
	}
	p.opts.Partner = ifindex
	return nil
}

// Counters may be called from any goroutine until Detach or Close.
func (p *Port) Counters() (Counters, error) {
	if p.objects == nil {
		return Counters{}, p.closed()
	}
	var cpus []redirectCounters
	if err := p.objects.CountersMap.Lookup(uint32(0), &cpus); err != nil {
		return Counters{}, fmt.Errorf("port %s: read counters: %w", p.opts.Ifname, err)
	}
	var sum Counters
	for _, c := range cpus {
		sum.Redirected += c.Redirected
		sum.Partner += c.Partner
		sum.Passed += c.Passed
		sum.Orphaned += c.Orphaned
	}
	return sum, nil
}

// Mode is "native" or "generic" once attached, empty before.
func (p *Port) Mode() Mode { return p.mode }

// Fallback says in words why an attached port of mode auto is generic, with
// the kernel's own text and the cure; it is empty when there is nothing to
// explain. [Port.NativeRefused] tells the two kinds of reason.
func (p *Port) Fallback() string { return p.fallback }

// NativeRefused says whether a port of mode auto is generic because native mode
// was refused, or would have lost what goes to the partner. It is false for one
// that was found attached in generic mode and adopted: native was not tried.
func (p *Port) NativeRefused() bool { return p.fallback != "" && !p.adopted }

// Adopted says whether Load found a program of this version still attached.
func (p *Port) Adopted() bool { return p.adopted }

// Close lets go of everything. A pinned program stays attached and carries
// frames to the partner once the sockets are closed; an unpinned one leaves.
func (p *Port) Close() error {
	var errs []error
	if p.link != nil {
		errs = append(errs, p.link.Close())
	}
	if p.objects != nil {
		errs = append(errs, p.objects.Close())
	}
	if p.lock != nil {
		errs = append(errs, p.lock.release())
	}
	p.link, p.objects, p.lock = nil, nil, nil
	return errors.Join(errs...)
}
