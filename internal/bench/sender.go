// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/netlab"
)

// paceTick is the step of paced sending. Shorter wakes up more often than the
// machine's timers hold; longer makes bursts that overflow a veth's ring (256).
const paceTick = time.Millisecond

// Sender sends the frames of a stream in the order of their numbers. Sending
// belongs to one goroutine; any other may read the counters meanwhile.
type Sender struct {
	ifname string
	stream *Stream
	fd     int
	buf    []byte

	// Owner: the sending goroutine writes, any goroutine reads.
	next    atomic.Uint32
	refused atomic.Uint64
}

// NewSender opens a sender on a device of a namespace.
func NewSender(ns *netlab.NS, ifname string, stream *Stream) (*Sender, error) {
	fd, err := openPacket(ns, ifname, 0, 0)
	if err != nil {
		return nil, err
	}
	return &Sender{ifname: ifname, stream: stream, fd: fd, buf: make([]byte, maxFrame)}, nil
}

// Sent is the number of frames sent so far, which is the next frame's number.
// Any goroutine may ask: a frame is counted after the device has taken it, so
// it may have arrived before it is counted.
func (s *Sender) Sent() uint32 { return s.next.Load() }

// Refused is how often the device refused a frame because its queue was full.
// Such a frame was sent again until the device took it. Any goroutine may ask.
func (s *Sender) Refused() uint64 { return s.refused.Load() }

// Send sends the next frames back to back.
func (s *Sender) Send(ctx context.Context, frames int) error {
	for range frames {
		number := s.next.Load()
		if err := s.sendUntilTaken(ctx, s.stream.Frame(s.buf, number)); err != nil {
			return fmt.Errorf("frame %d: %w", number, err)
		}
		s.next.Store(number + 1)
	}
	return nil
}

// SendPaced sends the next frames at a rate.
func (s *Sender) SendPaced(ctx context.Context, frames, perSecond int) error {
	tick := time.NewTicker(paceTick)
	defer tick.Stop()
	start, done := time.Now(), 0
	for done < frames {
		due := min(frames, int(time.Since(start).Seconds()*float64(perSecond))+1)
		if err := s.Send(ctx, due-done); err != nil {
			return err
		}
		done = due
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// SendRaw sends bytes that are no numbered frame.
func (s *Sender) SendRaw(ctx context.Context, frame []byte) error {
	return s.sendUntilTaken(ctx, frame)
}

func (s *Sender) sendUntilTaken(ctx context.Context, frame []byte) error {
	for ctx.Err() == nil {
		_, err := unix.Write(s.fd, frame)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOBUFS): // the frame was dropped at a full queue
			s.refused.Add(1)
			runtime.Gosched()
		default:
			return fmt.Errorf("device %s: send %d bytes: %w", s.ifname, len(frame), err)
		}
	}
	return ctx.Err()
}

// Close closes the socket.
func (s *Sender) Close() error { return unix.Close(s.fd) }
