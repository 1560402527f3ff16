// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/asavie/xdp"
	"golang.org/x/sys/unix"
)

// setsockopt sets an option that is a structure.
func setsockopt[T any](fd, level, name int, value *T) error {
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(value)), unsafe.Sizeof(*value), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// getsockopt reads an option that is a structure. A kernel that knows less of it
// than we do leaves the rest 0, which is an error here.
func getsockopt[T any](fd, level, name int, value *T) error {
	length := uint32(unsafe.Sizeof(*value))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(value)), uintptr(unsafe.Pointer(&length)), 0)
	if errno != 0 {
		return errno
	}
	if want := uint32(unsafe.Sizeof(*value)); length != want {
		return fmt.Errorf("kernel returned %d bytes of %d", length, want)
	}
	return nil
}

// send asks the kernel to look at the TX ring. A raw system call: it does not
// block, and the scheduler need not be told about it.
func send(fd int) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return errno
}

// recv asks the kernel to look at the fill ring.
func recv(fd int) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return errno
}

// socketError reads and clears SO_ERROR.
func socketError(fd int) unix.Errno {
	value, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		var errno unix.Errno
		errors.As(err, &errno)
		return errno
	}
	return unix.Errno(value)
}

// registerUmem makes the memory the UMEM of a socket.
func registerUmem(fd int, mem []byte, frameSize int) error {
	reg := unix.XDPUmemReg{
		Addr: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))),
		Len:  uint64(len(mem)),
		Size: uint32(frameSize),
	}
	err := setsockopt(fd, unix.SOL_XDP, unix.XDP_UMEM_REG, &reg)
	runtime.KeepAlive(mem)
	return err
}

// mappings are the mapped rings of a socket.
type mappings [][]byte

// ring maps one ring of a socket.
func (m *mappings) ring(fd int, pgoff int64, length uint64) ([]byte, error) {
	mem, err := unix.Mmap(fd, pgoff, int(length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err == nil {
		*m = append(*m, mem)
	}
	return mem, err
}

// unmap unmaps all.
func (m *mappings) unmap() error {
	var errs []error
	for _, mem := range *m {
		errs = append(errs, unix.Munmap(mem))
	}
	*m = nil
	return errors.Join(errs...)
}

// mapRing maps a ring and finds its indices and entries.
func mapRing[T uint64 | xdp.Desc](m *mappings, fd int, pgoff int64, off unix.XDPRingOffset, entries uint32) (Indices, []T, error) {
	var entry T
	mem, err := m.ring(fd, pgoff, off.Desc+uint64(entries)*uint64(unsafe.Sizeof(entry)))
	if err != nil {
		return Indices{}, nil, err
	}
	return splitRing[T](mem, off, entries)
}

// splitRing finds the indices and the entries of a ring in its memory. The
// bounds are checked: what follows is the only place that trusts the kernel's
// offsets.
func splitRing[T uint64 | xdp.Desc](mem []byte, off unix.XDPRingOffset, entries uint32) (Indices, []T, error) {
	var entry T
	size, length := uint64(unsafe.Sizeof(entry)), uint64(len(mem))
	if length < 4 || max(off.Producer, off.Consumer, off.Flags) > length-4 ||
		off.Desc >= length || (length-off.Desc)/size < uint64(entries) ||
		(off.Producer|off.Consumer|off.Flags)%4 != 0 || off.Desc%8 != 0 {
		return Indices{}, nil, fmt.Errorf("kernel's ring offsets %+v do not fit a ring of %d entries", off, entries)
	}
	word := func(at uint64) *uint32 { return (*uint32)(unsafe.Pointer(&mem[at])) }
	shared := Indices{word(off.Producer), word(off.Consumer), word(off.Flags)}
	return shared, unsafe.Slice((*T)(unsafe.Pointer(&mem[off.Desc])), entries), nil
}

// mapRings maps the four rings. What was mapped before an error is in m.
func mapRings(m *mappings, fd int, cfg *SocketConfig) (rings Rings, err error) {
	var off unix.XDPMmapOffsets
	if err := getsockopt(fd, unix.SOL_XDP, unix.XDP_MMAP_OFFSETS, &off); err != nil {
		return rings, fmt.Errorf("read XDP_MMAP_OFFSETS: %w", err)
	}
	if rings.Fill, err = mapProducer[uint64](m, fd, unix.XDP_UMEM_PGOFF_FILL_RING, off.Fr, cfg.FillEntries); err != nil {
		return rings, fmt.Errorf("map fill ring: %w", err)
	}
	if rings.Completion, err = mapConsumer[uint64](m, fd, unix.XDP_UMEM_PGOFF_COMPLETION_RING, off.Cr, cfg.CompletionEntries); err != nil {
		return rings, fmt.Errorf("map completion ring: %w", err)
	}
	if rings.Rx, err = mapConsumer[xdp.Desc](m, fd, unix.XDP_PGOFF_RX_RING, off.Rx, cfg.RxEntries); err != nil {
		return rings, fmt.Errorf("map rx ring: %w", err)
	}
	if rings.Tx, err = mapProducer[xdp.Desc](m, fd, unix.XDP_PGOFF_TX_RING, off.Tx, cfg.TxEntries); err != nil {
		return rings, fmt.Errorf("map tx ring: %w", err)
	}
	return rings, nil
}

func mapProducer[T uint64 | xdp.Desc](m *mappings, fd int, pgoff int64, off unix.XDPRingOffset, entries uint32) (*Producer[T], error) {
	shared, slots, err := mapRing[T](m, fd, pgoff, off, entries)
	if err != nil {
		return nil, err
	}
	return NewProducer(shared, slots)
}

func mapConsumer[T uint64 | xdp.Desc](m *mappings, fd int, pgoff int64, off unix.XDPRingOffset, entries uint32) (*Consumer[T], error) {
	shared, slots, err := mapRing[T](m, fd, pgoff, off, entries)
	if err != nil {
		return nil, err
	}
	return NewConsumer(shared, slots)
}
