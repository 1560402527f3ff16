// SPDX-License-Identifier: Apache-2.0

package xsk

import "golang.org/x/sys/unix"

// KickState is how a kick ended.
type KickState uint8

const (
	// Drained: nothing is left to do from here. In copy mode the kernel has
	// taken every frame; in zero-copy mode the driver has been woken.
	Drained KickState = iota
	// Again: frames are left and the kernel takes none now, because the
	// completion ring is full, or memory or the send buffer is short. Read
	// completions and kick later.
	Again
	// LinkDown: the device is down. The frames stay on the ring and leave when
	// it is up and somebody kicks.
	LinkDown
	// Gone: the device was deleted or has left the namespace. The socket will
	// never work again; close it.
	Gone
	// Failed: an errno without a known meaning, see KickResult.Errno.
	Failed
)

var kickStates = [...]string{"drained", "again", "link down", "device gone", "failed"}

func (s KickState) String() string {
	if int(s) < len(kickStates) {
		return kickStates[s]
	}
	return "unknown"
}

// KickResult is what a kick came to.
type KickResult struct {
	Calls uint32 // system calls made
	// Refused is how many frames the kernel took and completed, but could not
	// send: peer down, too long, or too short (EBUSY).
	Refused uint32
	State   KickState
	Errno   unix.Errno // of the last call; 0 after success
}

// KickTx makes the kernel take what is on the TX ring, as often as it takes: in
// copy mode one call moves only so many frames. It never blocks.
//
// Owner: the transmitter.
func (s *Socket) KickTx() (r KickResult) {
	// Each call that lets the loop go on either moves the kernel's index or
	// refuses one frame, so no kick needs more calls than the ring has entries;
	// the bound is there for a kernel that breaks that rule.
	stalled := false
	for limit := s.Tx.Entries() + 1; r.Calls < limit; {
		before := s.Tx.Free()
		r.Errno = s.kernel.Send()
		r.Calls++
		moved := s.Tx.Free() != before
		switch r.Errno {
		case 0:
			if s.mode.Zerocopy || s.Tx.Len() == 0 {
				r.State = Drained
				return r
			}
			// The kernel stops without an error at an invalid descriptor, and
			// does not show that it has skipped it. It also does nothing,
			// without an error, for a queue that has no TX side.
			if !moved && stalled {
				r.State = Again
				return r
			}
			stalled = !moved
		case unix.EBUSY:
			if s.mode.Zerocopy { // the driver is busy with something else
				r.State = Again
				return r
			}
			r.Refused++ // this frame completed but was not sent, the next not tried
		case unix.EINTR:
		case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM:
			if !moved {
				r.State = Again
				return r
			}
		default:
			r.State = s.stateOf(r.Errno)
			return r
		}
	}
	r.State = Again
	return r
}

// KickRx makes the driver look at the fill ring. It never blocks.
//
// Owner: the worker that polls the queue.
func (s *Socket) KickRx() (r KickResult) {
	r.Calls = 1
	r.Errno = s.kernel.Recv()
	r.State = s.stateOf(r.Errno)
	return r
}

// stateOf gives an errno its meaning, where progress does not matter.
func (s *Socket) stateOf(errno unix.Errno) KickState {
	switch errno {
	case 0:
		return Drained
	case unix.EAGAIN, unix.EBUSY, unix.EINTR, unix.ENOBUFS, unix.ENOMEM:
		return Again
	case unix.ENETDOWN:
		return LinkDown
	case unix.EBADF:
		return Gone
	case unix.ENXIO:
		return s.gone()
	default:
		return Failed
	}
}

// gone tells a socket that lost its device from a driver that cannot serve the
// queue just now: zero-copy drivers give ENXIO as well while the program is off
// or the device resets. The kernel leaves ENETDOWN in SO_ERROR when it unbinds a
// socket, and reading clears it, so the answer is kept.
func (s *Socket) gone() KickState {
	if !s.mode.Zerocopy || s.unbound.Load() || s.kernel.Error() == unix.ENETDOWN {
		// Ordering: none needed; TX and RX kicks of different workers agree.
		s.unbound.Store(true)
		return Gone
	}
	return LinkDown
}
