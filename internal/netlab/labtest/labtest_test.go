// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/netlab"
)

// verdict is a testing.TB that keeps how its test ended.
type verdict struct {
	testing.TB
	end string
}

func (v *verdict) Helper()               {}
func (v *verdict) Skipf(string, ...any)  { v.end = "skipped"; runtime.Goexit() }
func (v *verdict) Fatalf(string, ...any) { v.end = "failed"; runtime.Goexit() }

// privilegedWithout runs Privileged on a thread without any capability.
func privilegedWithout(t *testing.T) string {
	t.Helper()
	v, done := &verdict{TB: t, end: "ran"}, make(chan error, 1)
	netlab.OnOwnThread(func() {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		err := unix.Capset(&header, &none[0])
		defer func() { done <- err }()
		Privileged(v)
	})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return v.end
}

func TestPrivilegedSkipsOrFailsWithoutCapabilities(t *testing.T) {
	rows := []struct{ ci, require, want string }{
		{"", "", "skipped"},
		{"false", "0", "skipped"},
		{"true", "", "failed"},
		{"", "1", "failed"},
	}
	for _, r := range rows {
		t.Setenv("CI", r.ci)
		t.Setenv("XSKFWD_REQUIRE_PRIVILEGED", r.require)
		if got := privilegedWithout(t); got != r.want {
			t.Errorf("CI=%q XSKFWD_REQUIRE_PRIVILEGED=%q: test %s, want %s", r.ci, r.require, got, r.want)
		}
	}
}

func TestLookSeesAnOpenDescriptor(t *testing.T) {
	before := look()
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found := ""
	for what, n := range look() {
		if n > before[what] {
			found += what
		}
	}
	if !strings.Contains(found, "/status") {
		t.Errorf("found %q, want the file just opened", found)
	}
}
