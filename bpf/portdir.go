// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

// PortDir is the place below root (see [PinRoot]) for the pins of an interface
// in the network namespace of the calling thread: equal names in two
// namespaces get two places.
func PortDir(root, ifname string) (string, error) {
	prefix, err := netnsPrefix()
	if err != nil {
		return "", fmt.Errorf("port %s: %w", ifname, err)
	}
	return filepath.Join(root, prefix+escapeName(ifname)), nil
}

// netnsPrefix begins the name of each place of the calling thread's namespace.
func netnsPrefix() (string, error) {
	var ns unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &ns); err != nil {
		return "", fmt.Errorf("identify the network namespace: %w", err)
	}
	return fmt.Sprintf("%d-", ns.Ino), nil
}

// escapeName writes what is neither letter, digit, - nor _ as %XX: bpffs takes
// no names with a dot, and VLAN devices have one.
func escapeName(ifname string) string {
	plain := "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	var b strings.Builder
	for _, c := range []byte(ifname) {
		if strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	return b.String()
}

func isPortDir(name string) bool {
	ok, _ := regexp.MatchString(`^[0-9]+-[A-Za-z0-9_%-]+$`, name)
	return ok
}
