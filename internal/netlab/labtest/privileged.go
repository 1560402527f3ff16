// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Privileged skips a test that the user may not run. Where skipping would
// hide a failure (CI=true, or XSKFWD_REQUIRE_PRIVILEGED=1) it fails the test
// instead.
func Privileged(t testing.TB) {
	t.Helper()
	missing := missingCapability()
	switch {
	case missing == "":
	case os.Getenv("CI") == "true" || os.Getenv("XSKFWD_REQUIRE_PRIVILEGED") == "1":
		t.Fatalf("privileged test needs %s, and CI or XSKFWD_REQUIRE_PRIVILEGED forbids skipping it", missing)
	default:
		t.Skipf("privileged test needs %s: run as root", missing)
	}
}

// missingCapability names the first capability that a network lab needs and
// the process lacks.
func missingCapability() string {
	needed := []struct {
		name string
		bit  uint
	}{
		{"CAP_NET_ADMIN", unix.CAP_NET_ADMIN},
		{"CAP_NET_RAW", unix.CAP_NET_RAW},
		{"CAP_SYS_ADMIN", unix.CAP_SYS_ADMIN},
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // the kernel fills both halves of the 64-bit sets
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Sprintf("capabilities (%v)", err)
	}
	for _, c := range needed {
		if data[c.bit/32].Effective&(1<<(c.bit%32)) == 0 {
			return c.name
		}
	}
	return ""
}
