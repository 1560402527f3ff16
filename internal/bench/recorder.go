// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/netlab"
)

const (
	// recvBuffer is the socket's memory (the kernel doubles the value). It
	// holds a test's whole traffic even if this process gets no CPU meanwhile:
	// a full frame takes about 2300 bytes of it. Smaller, and the recorder
	// loses frames that the forwarder delivered; larger than 1 GiB overflows
	// the kernel's int.
	recvBuffer = 512 << 20

	// recvBatch is how many frames are read between two turns of the lock.
	recvBatch = 64

	// maxForeign bounds the foreign frames that are kept.
	maxForeign = 1024
)

// Recorder books every frame a device receives. It does not see what the
// device itself sends.
type Recorder struct {
	file *os.File // the socket, in the runtime's poller so that Close ends the read
	done chan struct{}

	// Owner: the reading goroutine.
	buf, oob []byte

	mu      sync.Mutex // guards everything below
	ledgers []*ledger
	foreign [][]byte
	others  uint64 // foreign frames, also those not kept
	lost    uint64
	last    time.Time // arrival of the latest batch
	err     error     // why reading ended, if not by Close
}

// NewRecorder starts recording frames of the given streams, and foreign ones,
// on a device of a namespace.
func NewRecorder(ns *netlab.NS, ifname string, streams ...*Stream) (*Recorder, error) {
	option := func(level, opt, value int) func(int) error {
		return func(fd int) error {
			if err := unix.SetsockoptInt(fd, level, opt, value); err != nil {
				return fmt.Errorf("socket option %d to %d: %w", opt, value, err)
			}
			return nil
		}
	}
	fd, err := openPacket(ns, ifname, unix.SOCK_NONBLOCK, unix.ETH_P_ALL,
		option(unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, recvBuffer),
		option(unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		option(unix.SOL_PACKET, unix.PACKET_AUXDATA, 1))
	if err != nil {
		return nil, err
	}
	r := &Recorder{
		file: os.NewFile(uintptr(fd), "packet:"+ifname),
		done: make(chan struct{}),
		buf:  make([]byte, tagBytes+maxFrame),
		oob:  make([]byte, unix.CmsgSpace(auxBytes)),
		last: time.Now(),
	}
	for _, s := range streams {
		r.ledgers = append(r.ledgers, newLedger(s))
	}
	conn, err := r.file.SyscallConn()
	if err != nil {
		r.file.Close()
		return nil, err
	}
	go r.read(conn)
	return r, nil
}

// read books frames until the file is closed.
func (r *Recorder) read(conn syscall.RawConn) {
	defer close(r.done)
	for {
		var failed error
		err := conn.Read(func(fd uintptr) bool {
			failed = r.readBatch(int(fd))
			return !errors.Is(failed, unix.EAGAIN)
		})
		if err != nil {
			return // closed
		}
		if failed != nil {
			r.mu.Lock()
			r.err = failed
			r.mu.Unlock()
			return
		}
	}
}

// readBatch reads until the batch is full (nil) or the socket is empty (EAGAIN).
func (r *Recorder) readBatch(fd int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range recvBatch {
		frame, err := r.receive(fd)
		switch {
		case err == nil:
			r.last = time.Now()
			r.book(frame)
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENETDOWN): // the device went down: it may come back
		default:
			return err
		}
	}
	return nil
}

func (r *Recorder) book(frame []byte) {
	for _, l := range r.ledgers {
		if l.enter(frame) {
			return
		}
	}
	r.others++
	if len(r.foreign) < maxForeign {
		r.foreign = append(r.foreign, bytes.Clone(frame))
	}
}

// auxBytes is the size of struct tpacket_auxdata; the offsets are its fields.
const (
	auxBytes     = 20
	auxStatus    = 0
	auxVLANTCI   = 16
	auxVLANTPID  = 18
	headerOffset = tagBytes // frames are read here, so that a tag can be put back in front
)

// receive reads one frame and puts back the outer VLAN tag, which the kernel
// takes out of the bytes.
func (r *Recorder) receive(fd int) ([]byte, error) {
	n, oobn, _, _, err := unix.Recvmsg(fd, r.buf[headerOffset:], r.oob, 0)
	if err != nil {
		return nil, err
	}
	frame := r.buf[headerOffset : headerOffset+n]
	if oobn < unix.CmsgSpace(0) {
		return frame, nil
	}
	header, aux, _, err := unix.ParseOneSocketControlMessage(r.oob[:oobn])
	if err != nil || header.Type != unix.PACKET_AUXDATA || len(aux) < auxBytes {
		return frame, nil
	}
	native := binary.NativeEndian
	if native.Uint32(aux[auxStatus:])&unix.TP_STATUS_VLAN_VALID == 0 {
		return frame, nil
	}
	frame = r.buf[:headerOffset+n]
	copy(frame, frame[headerOffset:headerOffset+macBytes])
	binary.BigEndian.PutUint16(frame[macBytes:], native.Uint16(aux[auxVLANTPID:]))
	binary.BigEndian.PutUint16(frame[macBytes+2:], native.Uint16(aux[auxVLANTCI:]))
	return frame, nil
}

// Report says what became of the first frames of a stream. Wait first: what
// is still under way counts as missing.
func (r *Recorder) Report(stream *Stream, sent uint32) (Report, error) {
	if err := r.addLost(); err != nil {
		return Report{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l, err := r.ledger(stream)
	if err != nil {
		return Report{}, err
	}
	report := l.report(sent)
	report.RecorderLost, report.Foreign = r.lost, r.others
	return report, r.err
}

// ledger finds the books of a stream. The caller holds mu.
func (r *Recorder) ledger(stream *Stream) (*ledger, error) {
	for _, l := range r.ledgers {
		if l.stream == stream {
			return l, nil
		}
	}
	return nil, errors.New("recorder: stream is not recorded here")
}

// addLost asks the socket what it lost since the last time.
func (r *Recorder) addLost() error {
	conn, err := r.file.SyscallConn()
	if err != nil {
		return err
	}
	var stats *unix.TpacketStats
	var failed error
	err = conn.Control(func(fd uintptr) {
		stats, failed = unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS)
	})
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("recorder: read socket statistics: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost += uint64(stats.Drops)
	return nil
}

// Foreign returns the frames that belong to no stream, in order of arrival,
// up to some bound.
func (r *Recorder) Foreign() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([][]byte(nil), r.foreign...)
}

// Wait waits until so many numbers of a stream have arrived.
func (r *Recorder) Wait(ctx context.Context, stream *Stream, frames uint32) error {
	var arrived uint64
	err := netlab.WaitFor(ctx, func() (bool, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		l, err := r.ledger(stream)
		if err != nil {
			return false, err
		}
		arrived = l.arrived
		return arrived >= uint64(frames), r.err
	})
	if err != nil {
		return fmt.Errorf("%d of %d frames arrived: %w", arrived, frames, err)
	}
	return nil
}

// WaitForeign waits until so many foreign frames have arrived.
func (r *Recorder) WaitForeign(ctx context.Context, frames int) error {
	var others uint64
	err := netlab.WaitFor(ctx, func() (bool, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		others = r.others
		return others >= uint64(frames), r.err
	})
	if err != nil {
		return fmt.Errorf("%d of %d foreign frames arrived: %w", others, frames, err)
	}
	return nil
}

// WaitQuiet waits until nothing has arrived for a while: where frames may
// have been lost, that is all one can wait for.
func (r *Recorder) WaitQuiet(ctx context.Context, quiet time.Duration) error {
	return netlab.WaitFor(ctx, func() (bool, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return time.Since(r.last) >= quiet, r.err
	})
}

// Close ends the recording. Reports are not available afterwards.
func (r *Recorder) Close() error {
	err := r.file.Close()
	<-r.done
	return err
}
