// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// What Open can fail with that a caller can act on. The errors it returns wrap
// one of these, and the errno.
var (
	// ErrNoZerocopy: the device, or the UMEM's mode, does not allow zero-copy.
	ErrNoZerocopy = errors.New("zero-copy is not available")
	// ErrMixedModes: the UMEM is in zero-copy mode and this queue can only
	// copy, or the socket was to copy. See Umem.Open for the way out.
	ErrMixedModes = errors.New("all sockets of a UMEM copy, or none does")
	// ErrQueueBusy: another AF_XDP socket owns the queue and keeps it.
	ErrQueueBusy = errors.New("queue is in use by another AF_XDP socket")
	// ErrMemlock: the UMEM is larger than RLIMIT_MEMLOCK allows.
	ErrMemlock = errors.New("locked memory limit")
	// ErrNoDevice: no such device, here or any more.
	ErrNoDevice = errors.New("no such device")
	// ErrClosed: the UMEM or the socket is closed.
	ErrClosed = errors.New("closed")
)

// ValidateRingSize checks the number of entries of a ring. name is the setting
// the number comes from.
func ValidateRingSize(name string, n uint32) error {
	if n == 0 || n&(n-1) != 0 || n > maxRingEntries {
		return fmt.Errorf("%s %d: must be a power of two from 1 to %d", name, n, maxRingEntries)
	}
	return nil
}

// errCopyUmem is why a socket copies that was to prefer zero-copy and joined
// others.
var errCopyUmem = errors.New("the umem is in copy mode")

// errTransient marks a refusal that may pass by itself: the kernel lets go of a
// closed socket's queue and locked memory late.
var errTransient = errors.New("transient")

// transient wraps an error so that errors.Is finds errTransient, which the
// message does not mention.
type transient struct{ error }

func (t transient) Unwrap() error        { return t.error }
func (t transient) Is(target error) bool { return target == errTransient }

func explainSocket(err error) error {
	switch {
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("open AF_XDP socket: %w: CAP_NET_RAW is missing", err)
	case errors.Is(err, unix.EAFNOSUPPORT):
		return fmt.Errorf("open AF_XDP socket: %w: the kernel was built without CONFIG_XDP_SOCKETS, or the service's RestrictAddressFamilies= forbids AF_XDP", err)
	default:
		return fmt.Errorf("open AF_XDP socket: %w", err)
	}
}

// explainRegister words a refused XDP_UMEM_REG. Memory over the limit is
// ENOBUFS, which may also be an earlier registration that is not undone yet.
func (u *Umem) explainRegister(err error) error {
	if !errors.Is(err, unix.ENOBUFS) {
		return fmt.Errorf("register umem of %s: %w", size(u.size), err)
	}
	limit := "unknown"
	var rl unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &rl) == nil {
		limit = size(rl.Cur)
	}
	err = fmt.Errorf("register umem of %s: %w: %w: RLIMIT_MEMLOCK is %s and CAP_IPC_LOCK is missing: "+
		"raise LimitMEMLOCK= in the service, or ulimit -l, or grant CAP_IPC_LOCK, or use fewer frames",
		size(u.size), err, ErrMemlock, limit)
	if u.registered {
		return transient{err}
	}
	return err
}

// explainBind words a refused bind that was to end in zero-copy mode or not.
func (o *opening) explainBind(err error, zerocopy, shared bool) error {
	bind := "bind AF_XDP in copy mode"
	if zerocopy {
		bind = "bind AF_XDP in zero-copy mode"
	}
	switch {
	case errors.Is(err, unix.EBUSY):
		return transient{fmt.Errorf("%s: %w: %w", bind, err, ErrQueueBusy)}
	case errors.Is(err, unix.ENODEV):
		return fmt.Errorf("%s: %w: no interface has index %d in this network namespace", bind, ErrNoDevice, o.cfg.Ifindex)
	case errors.Is(err, unix.ENETDOWN):
		return fmt.Errorf("%s: %w: the driver binds only while the interface is up", bind, err)
	case zerocopy && shared:
		return fmt.Errorf("%s: %w: %w: %w", bind, err, ErrNoZerocopy, ErrMixedModes)
	case zerocopy && errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%s: %w: %w: the driver refuses it here, or the device has no queue %d", bind, err, ErrNoZerocopy, o.cfg.Queue)
	case zerocopy:
		return fmt.Errorf("%s: %w: %w: the driver cannot do it", bind, err, ErrNoZerocopy)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%s: %w: the device has no queue %d, or the kernel does not know a flag (multi-buffer: %v)",
			bind, err, o.cfg.Queue, o.cfg.MultiBuffer)
	default:
		return fmt.Errorf("%s: %w", bind, err)
	}
}

// mixed words a policy that the UMEM's mode does not allow.
func (o *opening) mixed(umemZerocopy bool) error {
	if umemZerocopy {
		return fmt.Errorf("copy mode: the umem is in zero-copy mode: %w", ErrMixedModes)
	}
	return fmt.Errorf("zero-copy mode: %w: %w: %w", errCopyUmem, ErrNoZerocopy, ErrMixedModes)
}
