// SPDX-License-Identifier: Apache-2.0

// Package xsktest is a model of the kernel behind AF_XDP sockets, for tests
// without privileges. The sockets it gives out are real ones: their rings are
// the ring code of package xsk over Go memory, so that the race detector sees
// both sides. The kernel's side of a ring is the other end of the same code: the
// kernel consumes what user space produces.
//
// What the model does was measured on Linux 6.18 with veth; a test runs one
// script against both and compares.
package xsktest

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/asavie/xdp"
	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/xsk"
)

const (
	// Headroom is XDP_PACKET_HEADROOM: received frames begin that far into
	// their chunk.
	Headroom = 256
	// Budget is how many frames one kick moves unless Config says otherwise
	// (TX_BATCH_SIZE of net/xdp/xsk.c).
	Budget = 32
)

// Config describes a socket. Ring sizes of 0 are 64.
type Config struct {
	Ifname  string
	Ifindex int
	Queue   uint32

	FillEntries, CompletionEntries, RxEntries, TxEntries uint32

	// FirstIndex is where all ring indices begin; close to 2^32 they soon wrap.
	FirstIndex uint32
	// TxSkbBudget is how many frames one kick moves; 0 means Budget.
	TxSkbBudget uint32
	Zerocopy    bool
	// HoldCompletions keeps sent frames until Complete is called; otherwise
	// they complete as they are sent.
	HoldCompletions bool
	// Discard counts frames sent and does not keep them, so that nothing
	// allocates.
	Discard bool
	// Notify, if set, is called after frames were delivered, like the wake-up
	// of a poller. It is called on the goroutine that delivers.
	Notify func()
}

// Kernel is the side of the kernel of one socket. Its methods may be called from
// any goroutine.
type Kernel struct {
	Socket *xsk.Socket

	cfg                Config
	umem               *xsk.Umem
	fillFlags, txFlags *uint32

	mu         sync.Mutex
	fill       *xsk.CompletionRing // the kernel consumes it
	completion *xsk.FillRing       // the kernel produces it
	rx         *xsk.TxRing         // the kernel produces it
	tx         *xsk.RxRing         // the kernel consumes it
	inflight   []uint64            // sent, not completed
	sent       [][]byte
	sentCount  uint64
	down       bool
	peerBusy   bool
	gone       bool
	soError    unix.Errno // until it is read
	fault      unix.Errno
	busyPoll   xsk.BusyPoll
	stats      unix.XDPStatistics
}

// New opens a socket of the UMEM that is served by a Kernel.
func New(u *xsk.Umem, cfg Config) (*Kernel, error) {
	for _, n := range []*uint32{&cfg.FillEntries, &cfg.CompletionEntries, &cfg.RxEntries, &cfg.TxEntries} {
		if *n == 0 {
			*n = 64
		}
	}
	if cfg.TxSkbBudget == 0 {
		cfg.TxSkbBudget = Budget
	}
	if cfg.Ifname == "" {
		cfg.Ifname = "fake"
	}
	k := &Kernel{cfg: cfg, umem: u}
	rings, err := k.makeRings()
	if err != nil {
		return nil, err
	}
	id := xsk.Identity{Ifname: cfg.Ifname, Ifindex: cfg.Ifindex, Queue: cfg.Queue}
	mode := xsk.Mode{Zerocopy: cfg.Zerocopy, TxSkbBudget: cfg.TxSkbBudget}
	k.Socket, err = xsk.NewSocket(u, id, mode, rings, xsk.Kernel{
		FD:         -1,
		Send:       k.send,
		Recv:       k.recv,
		Error:      k.socketError,
		Statistics: k.statistics,
		BusyPoll:   k.setBusyPoll,
		Close:      func() error { return nil },
	})
	if err != nil {
		return nil, err
	}
	k.SetNeedWakeup(false, true)
	return k, nil
}

// makeRings makes both ends of the four rings.
func (k *Kernel) makeRings() (r xsk.Rings, err error) {
	first := k.cfg.FirstIndex
	fill, fillSlots := memory[uint64](first, k.cfg.FillEntries)
	completion, completionSlots := memory[uint64](first, k.cfg.CompletionEntries)
	rx, rxSlots := memory[xdp.Desc](first, k.cfg.RxEntries)
	tx, txSlots := memory[xdp.Desc](first, k.cfg.TxEntries)
	k.fillFlags, k.txFlags = fill.Flags, tx.Flags

	if r.Fill, k.fill, err = ends(fill, fillSlots); err != nil {
		return r, fmt.Errorf("fill %w", err)
	}
	if k.completion, r.Completion, err = ends(completion, completionSlots); err != nil {
		return r, fmt.Errorf("completion %w", err)
	}
	if k.rx, r.Rx, err = ends(rx, rxSlots); err != nil {
		return r, fmt.Errorf("rx %w", err)
	}
	if r.Tx, k.tx, err = ends(tx, txSlots); err != nil {
		return r, fmt.Errorf("tx %w", err)
	}
	return r, nil
}

// memory is what a ring and its indices lie in.
func memory[T uint64 | xdp.Desc](first, entries uint32) (xsk.Indices, []T) {
	words := &struct {
		producer uint32
		_        [31]uint32
		consumer uint32
		_        [31]uint32
		flags    uint32
	}{producer: first, consumer: first}
	return xsk.Indices{Producer: &words.producer, Consumer: &words.consumer, Flags: &words.flags}, make([]T, entries)
}

// ends are the two ends of one ring.
func ends[T uint64 | xdp.Desc](shared xsk.Indices, slots []T) (*xsk.Producer[T], *xsk.Consumer[T], error) {
	p, err := xsk.NewProducer(shared, slots)
	if err != nil {
		return nil, nil, err
	}
	c, err := xsk.NewConsumer(shared, slots)
	return p, c, err
}

// SetNeedWakeup sets what the kernel says on the fill and the TX ring. A new
// socket has false and true, as in copy mode. While the TX flag is off a kick
// does nothing, as in the kernel: use Transmit.
func (k *Kernel) SetNeedWakeup(fill, tx bool) {
	setFlag(k.fillFlags, fill)
	setFlag(k.txFlags, tx)
}

func setFlag(word *uint32, on bool) {
	value := uint32(0)
	if on {
		value = unix.XDP_RING_NEED_WAKEUP
	}
	// Ordering: the model of a plain store by the kernel; nothing goes with it.
	atomic.StoreUint32(word, value)
}

// SetLink takes the device up or down. While it is down kicks give ENETDOWN and
// frames stay on the TX ring.
func (k *Kernel) SetLink(up bool) { k.with(func() { k.down = !up }) }

// SetPeerBusy makes each frame fail to leave: it is completed and the kick gives
// EBUSY. That is what a veth does whose peer is down.
func (k *Kernel) SetPeerBusy(busy bool) { k.with(func() { k.peerBusy = busy }) }

// RemoveDevice deletes the device: kicks give ENXIO for ever.
func (k *Kernel) RemoveDevice() { k.with(func() { k.gone, k.soError = true, unix.ENETDOWN }) }

// SetFault makes kicks give an errno and do nothing; 0 ends it.
func (k *Kernel) SetFault(errno unix.Errno) { k.with(func() { k.fault = errno }) }

func (k *Kernel) with(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

// Statistics is what XDP_STATISTICS reads, also after Close.
func (k *Kernel) Statistics() unix.XDPStatistics {
	st, _ := k.statistics()
	return st
}

func (k *Kernel) statistics() (unix.XDPStatistics, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stats, nil
}

func (k *Kernel) socketError() unix.Errno {
	k.mu.Lock()
	defer k.mu.Unlock()
	errno := k.soError
	k.soError = 0
	return errno
}

func (k *Kernel) setBusyPoll(want xsk.BusyPoll) (xsk.BusyPoll, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.busyPoll = want
	return want, nil
}
