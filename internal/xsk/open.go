// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/pagepool"
)

// Policy says whether a socket is to be in zero-copy mode.
type Policy uint8

const (
	Prefer  Policy = iota // zero-copy if the driver can, else copy
	Require               // zero-copy, or an error
	Never                 // copy
)

// SocketConfig says what to open.
type SocketConfig struct {
	Ifname  string // for messages
	Ifindex int    // in the network namespace of the calling thread
	Queue   uint32

	// Ring sizes, powers of two.
	FillEntries, CompletionEntries, RxEntries, TxEntries uint32

	// Post are pages to put on the fill ring: before the bind for the first
	// socket of a UMEM, since some drivers never look again at a ring that was
	// empty then, and after it for the others, whose ring does not count until
	// then. They stay the caller's if Open fails.
	Post []pagepool.Page

	Zerocopy    Policy
	MultiBuffer bool // XDP_USE_SG: frames longer than a chunk; Linux 6.6
	// TxSkbBudget is how many frames one sendto may move in copy mode, where
	// the kernel lets one choose (6.18); it is cut to what the kernel allows,
	// 32 to TxEntries. 0 leaves it at 32. More saves system calls, and keeps
	// the thread in the kernel, with no chance to be preempted by the
	// garbage collector, for about a microsecond a frame.
	TxSkbBudget uint32

	// BusyTimeout is how long to wait for a queue that is in use; 0 means
	// DefaultBusyTimeout.
	BusyTimeout time.Duration
}

const (
	// DefaultBusyTimeout bounds the wait for a queue that is in use. The kernel
	// frees the queue of a closed socket late, measured 15-35 ms on 6.18. Less
	// than that would fail a restart; a queue that is still busy after two
	// seconds belongs to somebody.
	DefaultBusyTimeout = 2 * time.Second

	// Waits between attempts, doubled from the first to the last. Each attempt
	// is a new socket, and a new registration of the UMEM if it is the first.
	firstBusyWait = 5 * time.Millisecond
	lastBusyWait  = 200 * time.Millisecond
)

// Open binds a socket to a queue. The first socket registers the UMEM, those
// that follow share it. Any bound socket of the UMEM may be closed at any time:
// the next Open names another one as the owner.
//
// The kernel keeps a UMEM in one mode: once the first socket is in zero-copy
// mode, one that can only copy is refused, and the other way round. Under Prefer
// the first socket decides, and every refused attempt ends in a new socket with
// a new registration. If a later one is refused with ErrMixedModes, close all
// sockets of the UMEM and open them again with Never.
func (u *Umem) Open(cfg SocketConfig) (*Socket, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("port %s queue %d: %w", cfg.Ifname, cfg.Queue, err)
	}
	zerocopy := cfg.Zerocopy != Never
	s, err := u.openWhenFree(&cfg, zerocopy, nil)
	if cfg.Zerocopy == Prefer && errors.Is(err, ErrNoZerocopy) && !errors.Is(err, ErrMixedModes) {
		s, err = u.openWhenFree(&cfg, false, err)
	}
	if err != nil {
		return nil, fmt.Errorf("port %s queue %d: %w", cfg.Ifname, cfg.Queue, err)
	}
	return s, nil
}

func (cfg *SocketConfig) validate() error {
	if n := len(cfg.Post); n > int(cfg.FillEntries) {
		return fmt.Errorf("%d pages to post do not fit a fill ring of %d", n, cfg.FillEntries)
	}
	return errors.Join(
		ValidateRingSize("fill ring size", cfg.FillEntries),
		ValidateRingSize("completion ring size", cfg.CompletionEntries),
		ValidateRingSize("rx ring size", cfg.RxEntries),
		ValidateRingSize("tx ring size", cfg.TxEntries),
	)
}

// openWhenFree attempts to open until the queue is free, or the time is up.
func (u *Umem) openWhenFree(cfg *SocketConfig, zerocopy bool, whyCopy error) (*Socket, error) {
	timeout := cfg.BusyTimeout
	if timeout == 0 {
		timeout = DefaultBusyTimeout
	}
	deadline := time.Now().Add(timeout)
	for wait := firstBusyWait; ; wait = min(2*wait, lastBusyWait) {
		s, err := u.attempt(cfg, zerocopy, whyCopy)
		if !errors.Is(err, errTransient) {
			return s, err
		}
		if !time.Now().Add(wait).Before(deadline) {
			return nil, fmt.Errorf("%w (waited %v)", err, timeout)
		}
		time.Sleep(wait)
	}
}

// attempt opens a socket once. Nothing is left of one that fails.
func (u *Umem) attempt(cfg *SocketConfig, zerocopy bool, whyCopy error) (*Socket, error) {
	u.openMu.Lock()
	defer u.openMu.Unlock()
	if u.closed {
		return nil, fmt.Errorf("umem: %w", ErrClosed)
	}
	o := opening{u: u, cfg: cfg, zerocopy: zerocopy}
	mode, err := o.open()
	if err != nil {
		return nil, errors.Join(err, o.close())
	}
	mode.WhyCopy = whyCopy
	if zerocopy && !mode.Zerocopy {
		mode.WhyCopy = errCopyUmem
	}
	return u.addSocket(o.id, mode, o.rings, o.kernel()), nil
}

// opening is a socket on its way.
type opening struct {
	u        *Umem
	cfg      *SocketConfig
	zerocopy bool // asked for

	fd    int
	maps  mappings
	rings Rings
	id    Identity
}

// open goes through the steps in the kernel's order.
func (o *opening) open() (mode Mode, err error) {
	o.fd, err = unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		o.fd = -1
		return mode, explainSocket(err)
	}
	if err := o.identify(); err != nil {
		return mode, err
	}
	if err := o.makeRings(); err != nil {
		return mode, err
	}
	mode.TxSkbBudget, err = setTxSkbBudget(o.fd, o.cfg.TxSkbBudget, o.cfg.TxEntries)
	if err != nil {
		return mode, err
	}
	if err := o.bind(); err != nil {
		return mode, err
	}
	mode.Zerocopy, err = readZerocopy(o.fd)
	return mode, err
}

// identify refuses a queue that this UMEM has a socket on.
func (o *opening) identify() error {
	cookie, err := unix.GetsockoptUint64(o.fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return fmt.Errorf("read SO_NETNS_COOKIE: %w", err)
	}
	o.id = Identity{Ifname: o.cfg.Ifname, Ifindex: o.cfg.Ifindex, Queue: o.cfg.Queue, Netns: cookie}
	for _, s := range o.u.sockets {
		if s.id.Ifindex == o.id.Ifindex && s.id.Queue == o.id.Queue && s.id.Netns == o.id.Netns && !s.unbound.Load() {
			return fmt.Errorf("%w, of this process", ErrQueueBusy)
		}
	}
	return nil
}

// makeRings creates and maps the four rings.
func (o *opening) makeRings() error {
	for _, r := range [...]struct {
		name    string
		option  int
		entries uint32
	}{
		{"fill", unix.XDP_UMEM_FILL_RING, o.cfg.FillEntries},
		{"completion", unix.XDP_UMEM_COMPLETION_RING, o.cfg.CompletionEntries},
		{"rx", unix.XDP_RX_RING, o.cfg.RxEntries},
		{"tx", unix.XDP_TX_RING, o.cfg.TxEntries},
	} {
		if err := unix.SetsockoptInt(o.fd, unix.SOL_XDP, r.option, int(r.entries)); err != nil {
			return fmt.Errorf("make %s ring of %d: %w", r.name, r.entries, err)
		}
	}
	var err error
	o.rings, err = mapRings(&o.maps, o.fd, o.cfg)
	return err
}

// bind shares the UMEM of a bound socket, or registers it if there is none.
func (o *opening) bind() error {
	for _, owner := range o.u.sockets {
		if owner.kernel.FD < 0 {
			continue
		}
		err := o.share(owner)
		if errors.Is(err, unix.EBADF) {
			continue // its device is gone
		}
		return err
	}
	return o.register()
}

// share binds to the UMEM of another socket. The flags must be XDP_SHARED_UMEM
// alone: copy mode, need-wakeup and multi-buffer are inherited.
func (o *opening) share(owner *Socket) error {
	if zc := owner.mode.Zerocopy; zc != o.zerocopy && (zc || o.cfg.Zerocopy == Require) {
		return o.mixed(zc)
	}
	err := unix.Bind(o.fd, &unix.SockaddrXDP{
		Flags:        unix.XDP_SHARED_UMEM,
		Ifindex:      uint32(o.cfg.Ifindex),
		QueueID:      o.cfg.Queue,
		SharedUmemFD: uint32(owner.kernel.FD),
	})
	if errors.Is(err, unix.EBADF) {
		return err
	}
	if err != nil {
		return o.explainBind(err, owner.mode.Zerocopy, true)
	}
	o.post()
	return nil
}

// register makes the UMEM known to the kernel by this socket, and binds it.
func (o *opening) register() error {
	if err := registerUmem(o.fd, o.u.mem, o.u.FrameSize()); err != nil {
		return o.u.explainRegister(err)
	}
	o.u.registered = true
	o.post()
	flags := uint16(unix.XDP_USE_NEED_WAKEUP)
	if o.zerocopy {
		flags |= unix.XDP_ZEROCOPY
	} else {
		flags |= unix.XDP_COPY
	}
	if o.cfg.MultiBuffer {
		flags |= unix.XDP_USE_SG
	}
	err := unix.Bind(o.fd, &unix.SockaddrXDP{Flags: flags, Ifindex: uint32(o.cfg.Ifindex), QueueID: o.cfg.Queue})
	if err != nil {
		return o.explainBind(err, o.zerocopy, false)
	}
	return nil
}

// post puts the caller's pages on the fill ring, which has room: it is new.
func (o *opening) post() {
	idx, _ := o.rings.Fill.Reserve(uint32(len(o.cfg.Post)))
	for i, p := range o.cfg.Post {
		o.rings.Fill.Set(idx+uint32(i), o.u.AddrOf(p))
	}
	o.rings.Fill.Submit(uint32(len(o.cfg.Post)))
}

// kernel is the system calls of the finished socket.
func (o *opening) kernel() Kernel {
	fd, maps := o.fd, o.maps
	return Kernel{
		FD:    fd,
		Send:  func() unix.Errno { return send(fd) },
		Recv:  func() unix.Errno { return recv(fd) },
		Error: func() unix.Errno { return socketError(fd) },
		Statistics: func() (st unix.XDPStatistics, err error) {
			err = getsockopt(fd, unix.SOL_XDP, unix.XDP_STATISTICS, &st)
			return st, err
		},
		BusyPoll: func(want BusyPoll) (BusyPoll, error) { return setBusyPoll(fd, want) },
		Close:    func() error { return errors.Join(maps.unmap(), unix.Close(fd)) },
	}
}

// close undoes what open did.
func (o *opening) close() error {
	err := o.maps.unmap()
	if o.fd < 0 {
		return err
	}
	return errors.Join(err, unix.Close(o.fd))
}
