// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

func TestTableRowsAreWhole(t *testing.T) {
	seen := map[uint]bool{}
	for _, c := range Table() {
		if c.Why == "" || c.Without == "" || c.Drop == "" {
			t.Errorf("%s: a column is empty", c.Name)
		}
		if seen[c.Bit] || !strings.HasPrefix(c.Name, "CAP_") {
			t.Errorf("%s, bit %d: twice, or no name of a capability", c.Name, c.Bit)
		}
		if c.Needed == Always && !c.Unit {
			t.Errorf("%s is always needed and the unit does not grant it", c.Name)
		}
		seen[c.Bit] = true
	}
}

// The numbers are those of the kernel's linux/capability.h.
func TestTableNumbersAreTheKernels(t *testing.T) {
	kernel := map[string]uint{"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_IPC_LOCK": 14, "CAP_SYS_ADMIN": 21, "CAP_BPF": 39}
	for _, c := range Table() {
		if c.Bit != kernel[c.Name] {
			t.Errorf("%s is bit %d, the kernel's is %d", c.Name, c.Bit, kernel[c.Name])
		}
	}
}

func TestMissingIsExactlyWhatIsNotInTheSet(t *testing.T) {
	all := ^uint64(0)
	if got := Missing(all); len(got) != 0 {
		t.Errorf("of all: %v", got)
	}
	for _, c := range Table() {
		got := Missing(all &^ (1 << c.Bit))
		if c.Needed == Always && (len(got) != 1 || got[0].Name != c.Name) {
			t.Errorf("without %s: %v", c.Name, got)
		}
		if c.Needed == Sometimes && len(got) != 0 {
			t.Errorf("without %s, which a start can do without: %v", c.Name, got)
		}
	}
	if got := len(Missing(0)); got != 3 {
		t.Errorf("of none: %d rows, want 3", got)
	}
}

func TestEffectiveIsWhatTheKernelShowsOfTheThread(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^CapEff:\s*([0-9a-f]+)$`).FindSubmatch(status)
	if line == nil {
		t.Fatal("no CapEff in status")
	}
	want, err := strconv.ParseUint(string(line[1]), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Effective(); err != nil || got != want {
		t.Errorf("effective set %#x, %v; the kernel shows %#x", got, err, want)
	}
}

// drop takes capabilities out of the effective set of the calling thread, which must be one that ends.
func drop(bits ...uint) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var words [2]unix.CapUserData
	if err := unix.Capget(&header, &words[0]); err != nil {
		return err
	}
	for _, bit := range bits {
		words[bit/32].Effective &^= 1 << (bit % 32)
	}
	return unix.Capset(&header, &words[0])
}

func TestIntegrationCheckNamesTheMissingOneAndTheCure(t *testing.T) {
	labtest.Privileged(t)
	if err := Check(); err != nil {
		t.Errorf("with everything: %v", err)
	}
	for _, c := range Table() {
		checked := make(chan error)
		netlab.OnOwnThread(func() {
			if err := drop(c.Bit); err != nil {
				t.Error(err)
			}
			checked <- Check()
		})
		err := <-checked
		if c.Needed == Sometimes {
			if err != nil {
				t.Errorf("without %s: %v", c.Name, err)
			}
			continue
		}
		for _, want := range []string{c.Name + " is missing", c.Why, "AmbientCapabilities="} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("without %s: %v does not say %q", c.Name, err, want)
			}
		}
	}
}

// What the kernel says without a capability is what the table says of it.
func TestIntegrationKernelRefusesWhatTheTableSays(t *testing.T) {
	labtest.Privileged(t)
	lab := labtest.NS(t)
	socket := func() error {
		fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}
	promiscuity := func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return fmt.Errorf("look up lo: %w", err)
		}
		return netlink.SetPromiscOn(lo)
	}
	for _, c := range []struct {
		what string
		try  func() error
		drop uint
	}{
		{"AF_XDP socket", socket, unix.CAP_NET_RAW},
		{"promiscuity", promiscuity, unix.CAP_NET_ADMIN},
	} {
		if err := lab.Do(c.try); err != nil {
			t.Errorf("%s with all capabilities: %v", c.what, err)
		}
		err := lab.Do(func() error { return errors.Join(drop(c.drop), c.try()) })
		if !errors.Is(err, unix.EPERM) {
			t.Errorf("%s without capability %d: %v, want EPERM", c.what, c.drop, err)
		}
	}
}
