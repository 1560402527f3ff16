// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/netlab"
)

const (
	// maxFrame is the longest frame sent or received: what a super-packet of
	// a careless offload may have, so that it is seen whole and not cut.
	maxFrame = 1 << 16

	// maxFrames bounds the numbers a recorder keeps books on (4 MiB of them).
	maxFrames = 1 << 25
)

// openPacket opens an AF_PACKET socket on a device of a namespace. With
// protocol 0 it receives nothing.
func openPacket(ns *netlab.NS, ifname string, flags int, protocol uint16, options ...func(fd int) error) (int, error) {
	fd := -1
	err := ns.Do(func() error {
		dev, err := net.InterfaceByName(ifname)
		if err != nil {
			return err
		}
		// Protocol 0: nothing of other devices comes in before the bind.
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|flags, 0); err != nil {
			return err
		}
		for _, set := range options {
			if err := set(fd); err != nil {
				return err
			}
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: dev.Index, Protocol: protocol<<8 | protocol>>8})
	})
	if err != nil {
		if fd >= 0 {
			unix.Close(fd)
		}
		return -1, fmt.Errorf("device %s: open packet socket: %w", ifname, err)
	}
	return fd, nil
}
