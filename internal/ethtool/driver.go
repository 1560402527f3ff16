// SPDX-License-Identifier: Apache-2.0

package ethtool

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Driver names the driver of a device, such as "ixgbe" or "veth". Netlink
// has no such question and /sys shows the namespace it was mounted in, so
// this one is the old ioctl.
func Driver(ifname string) (string, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("device %s: read driver name: open socket: %w", ifname, err)
	}
	defer unix.Close(fd)
	info, err := unix.IoctlGetEthtoolDrvinfo(fd, ifname)
	if err != nil {
		return "", fmt.Errorf("device %s: read driver name: %w", ifname, err)
	}
	return unix.ByteSliceToString(info.Driver[:]), nil
}
