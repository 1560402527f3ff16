// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Socket is an AF_XDP socket bound to one queue of one device.
//
// Owner: each ring belongs to one goroutine at a time. The methods that are safe
// for any goroutine say so.
type Socket struct {
	Fill       *FillRing
	Completion *CompletionRing
	Rx         *RxRing
	Tx         *TxRing

	kernel Kernel
	umem   *Umem
	id     Identity
	mode   Mode
	// unbound says that the kernel has reported the device gone. Written by
	// kicks.
	unbound atomic.Bool

	// mu keeps Close apart from those who read counters. The packet path does
	// not take it.
	mu     sync.Mutex
	closed bool // guarded by mu
}

// Identity says which queue a socket is bound to.
type Identity struct {
	Ifname  string // as it was at Open; devices are renamed
	Ifindex int
	Queue   uint32
	Netns   uint64 // cookie of the network namespace; Ifindex repeats in another
}

// String names the queue the way errors do.
func (id Identity) String() string { return fmt.Sprintf("port %s queue %d", id.Ifname, id.Queue) }

// Mode is what the kernel made of a bind.
type Mode struct {
	Zerocopy bool // read back by XDP_OPTIONS
	// WhyCopy is the refusal that ended in copy mode, if zero-copy was asked
	// for.
	WhyCopy error
	// TxSkbBudget is how many frames one sendto moves in copy mode.
	TxSkbBudget uint32
}

// Kernel is what a socket asks of the side that serves its rings. Open fills it
// with system calls, package xsktest with a model of the kernel.
type Kernel struct {
	FD         int                                   // -1: there is nothing to poll
	Send       func() unix.Errno                     // sendto without data, never blocking
	Recv       func() unix.Errno                     // recvfrom without data, never blocking
	Error      func() unix.Errno                     // SO_ERROR: read and cleared
	Statistics func() (unix.XDPStatistics, error)    // XDP_STATISTICS
	BusyPoll   func(want BusyPoll) (BusyPoll, error) // sets and reads back
	Close      func() error                          // unmaps the rings, closes the descriptor
}

// Rings are the four rings of a socket.
type Rings struct {
	Fill       *FillRing
	Completion *CompletionRing
	Rx         *RxRing
	Tx         *TxRing
}

// NewSocket makes a socket of rings and of the side that serves them, and counts
// it among those that keep the UMEM from being closed.
func NewSocket(u *Umem, id Identity, mode Mode, rings Rings, k Kernel) (*Socket, error) {
	u.openMu.Lock()
	defer u.openMu.Unlock()
	if u.closed {
		return nil, fmt.Errorf("%s: umem: %w", id, ErrClosed)
	}
	return u.addSocket(id, mode, rings, k), nil
}

// addSocket is called with openMu held.
func (u *Umem) addSocket(id Identity, mode Mode, rings Rings, k Kernel) *Socket {
	s := &Socket{
		Fill: rings.Fill, Completion: rings.Completion, Rx: rings.Rx, Tx: rings.Tx,
		kernel: k, umem: u, id: id, mode: mode,
	}
	u.sockets = append(u.sockets, s)
	return s
}

// closeSocket closes a socket and forgets it. Both in one lock: otherwise an Open
// in between could share with a descriptor that is somebody else's by then.
func (u *Umem) closeSocket(s *Socket) error {
	u.openMu.Lock()
	defer u.openMu.Unlock()
	u.sockets = slices.DeleteFunc(u.sockets, func(other *Socket) bool { return other == s })
	return s.kernel.Close()
}

// FD is the descriptor to poll for received frames, -1 if there is none.
func (s *Socket) FD() int { return s.kernel.FD }

// Queue is the number of the device queue.
func (s *Socket) Queue() int { return int(s.id.Queue) }

// Ifindex is the device.
func (s *Socket) Ifindex() int { return s.id.Ifindex }

// Zerocopy reports whether the driver reads and writes the UMEM itself, as read
// back from the kernel.
func (s *Socket) Zerocopy() bool { return s.mode.Zerocopy }

// Mode is what the kernel made of the bind.
func (s *Socket) Mode() Mode { return s.mode }

// Umem is the UMEM the socket shares.
func (s *Socket) Umem() *Umem { return s.umem }

// String names the queue the way errors do.
func (s *Socket) String() string { return s.id.String() }

// Statistics reads the kernel's counters of this socket. They start at 0 with
// each socket. Any goroutine; ErrClosed after Close.
func (s *Socket) Statistics() (unix.XDPStatistics, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return unix.XDPStatistics{}, fmt.Errorf("%s: statistics: %w", s.id, ErrClosed)
	}
	st, err := s.kernel.Statistics()
	if err != nil {
		return st, fmt.Errorf("%s: read XDP_STATISTICS: %w", s.id, err)
	}
	return st, nil
}

// RingEntries is how full the rings are.
type RingEntries struct{ Fill, Completion, Rx, Tx uint32 }

// RingEntries counts the entries on each ring. Any goroutine; all zero after
// Close.
func (s *Socket) RingEntries() RingEntries {
	s.mu.Lock()
	defer s.mu.Unlock()
	return RingEntries{s.Fill.Len(), s.Completion.Len(), s.Rx.Len(), s.Tx.Len()}
}

// BusyPoll are the socket's busy-polling settings. The zero value is off.
type BusyPoll struct {
	Prefer bool // SO_PREFER_BUSY_POLL: the device's interrupts stay off while we poll
	Usecs  int  // SO_BUSY_POLL
	Budget int  // SO_BUSY_POLL_BUDGET, packets; 0 leaves what it is. It cannot be read back.
}

// SetBusyPoll asks for busy polling and returns what the kernel made of it. Any
// goroutine.
func (s *Socket) SetBusyPoll(want BusyPoll) (BusyPoll, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return BusyPoll{}, fmt.Errorf("%s: busy poll: %w", s.id, ErrClosed)
	}
	got, err := s.kernel.BusyPoll(want)
	if err != nil {
		return got, fmt.Errorf("%s: set busy poll: %w", s.id, err)
	}
	return got, nil
}

// Close unmaps the rings and closes the descriptor. Stop whoever uses the rings
// first: afterwards they look empty and full at once, so that a late look finds
// nothing, but a look at the same time as Close may touch unmapped memory.
func (s *Socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.Fill.detach()
	s.Completion.detach()
	s.Rx.detach()
	s.Tx.detach()
	err := s.umem.closeSocket(s)
	// The number of the descriptor is soon somebody else's: no kick may use it.
	s.kernel.Send, s.kernel.Recv = badDescriptor, badDescriptor
	if err != nil {
		return fmt.Errorf("%s: close: %w", s.id, err)
	}
	return nil
}

func badDescriptor() unix.Errno { return unix.EBADF }

// detach leaves a ring without entries and without shared memory.
func (r *Producer[T]) detach() { *r = Producer[T]{shared: detached()} }

// detach leaves a ring without entries and without shared memory.
func (r *Consumer[T]) detach() { *r = Consumer[T]{shared: detached()} }

func detached() Indices {
	return Indices{Producer: new(uint32), Consumer: new(uint32), Flags: new(uint32)}
}
