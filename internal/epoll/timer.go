// SPDX-License-Identifier: Apache-2.0

package epoll

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/napi"
)

// Timer is a one-shot timer. Its descriptor is added to a Waiter like any other, with
// the event of its instance and napi.SourceTimer.
type Timer struct {
	fd int

	// mu keeps the descriptor's number from meaning something else under Start.
	mu     sync.RWMutex
	closed bool
}

var _ napi.Timer = (*Timer)(nil)

// NewTimer opens a timer that is not started.
func NewTimer() (*Timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("epoll: create timer: %w", err)
	}
	return &Timer{fd: fd}, nil
}

// FD returns the descriptor to give to Waiter.Add.
func (t *Timer) FD() int { return t.fd }

// Start makes the timer expire once, after d, instead of when it would have before.
func (t *Timer) Start(d time.Duration) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.closed {
		return fmt.Errorf("epoll: start timer: %w", os.ErrClosed)
	}
	// This also forgets an expiry that nobody has read, and so makes the next one an edge.
	// A time of 0 would stop the timer, hence at least a nanosecond.
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(d, 1)))}
	if err := unix.TimerfdSettime(t.fd, 0, &spec, nil); err != nil {
		return fmt.Errorf("epoll: start timer: %w", err)
	}
	return nil
}

// Close closes the timer, which takes it off its Waiter. Start is refused afterwards.
func (t *Timer) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	if err := unix.Close(t.fd); err != nil {
		return fmt.Errorf("epoll: close timer: %w", err)
	}
	return nil
}
