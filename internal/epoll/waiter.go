// SPDX-License-Identifier: Apache-2.0

package epoll

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/napi"
)

// batch is how many events one system call returns. It is what napi's loop asks for:
// fewer would mean more calls after a burst, more would never be filled.
const batch = 64

// Waiter waits for descriptors and its doorbell.
type Waiter struct {
	epfd     int
	doorbell int
	// one is what a ring of the doorbell writes: 1 as a little-endian uint64. The sum
	// is never read back and does not overflow. Never changed.
	one [8]byte
	// Owner: the goroutine in Wait.
	raw [batch]unix.EpollEvent

	// mu keeps the descriptors from being closed, and their numbers from meaning
	// something else, while another goroutine is about to use them.
	mu     sync.RWMutex
	closed bool
}

var _ napi.Waiter = (*Waiter)(nil)

// New opens a Waiter that knows its doorbell only.
func New() (*Waiter, error) {
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: create: %w", err)
	}
	doorbell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("epoll: create doorbell: %w", err), unix.Close(epfd))
	}
	w := &Waiter{epfd: epfd, doorbell: doorbell, one: [8]byte{1}}
	if err := w.Add(doorbell, napi.Event{Napi: napi.Doorbell, Source: napi.SourceKick}); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Add makes Wait return ev each time fd becomes readable. It returns it once at the
// start if fd is readable already.
func (w *Waiter) Add(fd int, ev napi.Event) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return fmt.Errorf("epoll: add descriptor %d: %w", fd, os.ErrClosed)
	}
	// The eight bytes that belong to us carry the event itself, so that Wait needs no table.
	raw := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(ev.Napi), Pad: int32(ev.Source)}
	if err := unix.EpollCtl(w.epfd, unix.EPOLL_CTL_ADD, fd, &raw); err != nil {
		return fmt.Errorf("epoll: add descriptor %d: %w", fd, err)
	}
	return nil
}

// Remove undoes Add, before fd is closed.
func (w *Waiter) Remove(fd int) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return fmt.Errorf("epoll: remove descriptor %d: %w", fd, os.ErrClosed)
	}
	if err := unix.EpollCtl(w.epfd, unix.EPOLL_CTL_DEL, fd, nil); err != nil {
		return fmt.Errorf("epoll: remove descriptor %d: %w", fd, err)
	}
	return nil
}

// Wait fills evs: see napi.Waiter. Not to be called during or after Close.
func (w *Waiter) Wait(timeout time.Duration, evs []napi.Event) (int, error) {
	raw := w.raw[:min(len(evs), batch)]
	n, err := epollWait(w.epfd, raw, timeout)
	if err != nil {
		return 0, fmt.Errorf("epoll: wait: %w", err)
	}
	for i := range raw[:n] {
		evs[i] = napi.Event{Napi: int(raw[i].Fd), Source: napi.Source(raw[i].Pad)}
	}
	return n, nil
}

// epollWait waits again after a signal, of which the Go runtime sends many. It is an
// ordinary system call, so that the runtime runs other goroutines meanwhile.
func epollWait(epfd int, raw []unix.EpollEvent, timeout time.Duration) (int, error) {
	var deadline time.Time
	if timeout > 0 {
		deadline = time.Now().Add(timeout)
	}
	for {
		n, err := unix.EpollWait(epfd, raw, milliseconds(timeout))
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
		if timeout > 0 {
			timeout = max(time.Until(deadline), 0)
		}
	}
}

// milliseconds rounds up, so that a wait is never shorter than asked for.
func milliseconds(d time.Duration) int {
	if d < 0 {
		return -1
	}
	return int((d + time.Millisecond - 1) / time.Millisecond)
}

// Wake ends the Wait that blocks, or the next one.
func (w *Waiter) Wake() error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return fmt.Errorf("epoll: ring doorbell: %w", os.ErrClosed)
	}
	if _, err := unix.Write(w.doorbell, w.one[:]); err != nil {
		return fmt.Errorf("epoll: ring doorbell: %w", err)
	}
	return nil
}

// Close closes the Waiter, not what was added to it. Nobody may be in Wait. Wake and a
// second Close are harmless afterwards.
func (w *Waiter) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	if err := errors.Join(unix.Close(w.doorbell), unix.Close(w.epfd)); err != nil {
		return fmt.Errorf("epoll: close: %w", err)
	}
	return nil
}
