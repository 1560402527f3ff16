// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/netlab"
)

// hostMounts is mountinfo of a host with bpffs in the usual place, and of a
// service on it whose mount namespace is a copy.
const (
	hostMounts = `26 1 254:0 / / rw,relatime - ext4 /dev/vda rw
22 26 0:21 / /sys rw shared:7 - sysfs sysfs rw
41 22 0:33 / /sys/fs/bpf rw,nosuid shared:11 - bpf bpf rw,mode=700
`
	serviceMounts = `126 1 254:0 / / ro,relatime master:1 - ext4 /dev/vda rw
122 126 0:21 / /sys rw master:7 - sysfs sysfs rw
141 122 0:33 / /sys/fs/bpf rw,nosuid master:11 - bpf bpf rw,mode=700
`
	noBpffs = `26 1 254:0 / / rw,relatime - ext4 /dev/vda rw
22 26 0:21 / /sys rw shared:7 - sysfs sysfs rw
`
	netnsExecMounts = `226 1 254:0 / / rw,relatime master:1 - ext4 /dev/vda rw
250 226 0:60 / /sys rw - sysfs r0 rw
`
)

func TestPinRootTellsFromTheMountsWhetherPinsSurvive(t *testing.T) {
	rows := []struct {
		name, own, initial string
		mayMount           bool
		dir                string
		survives           bool
		reason             string
	}{
		{"host", hostMounts, hostMounts, true, "/sys/fs/bpf/xskfwd", true, "whole host"},
		{"service with a copy of the mounts", serviceMounts, hostMounts, true, "/sys/fs/bpf/xskfwd", true, "whole host"},
		{"own bpffs in a private namespace", netnsExecMounts + "251 250 0:61 / /sys/fs/bpf rw - bpf bpf rw\n", hostMounts, true, "/sys/fs/bpf/xskfwd", false, "private mount namespace"},
		{"none in a private namespace", netnsExecMounts, hostMounts, true, "", false, "ip netns exec"},
		{"none, and none may be mounted", noBpffs, noBpffs, false, "", false, "no bpffs is mounted"},
		{"none, and no place to mount it", noBpffs, noBpffs, true, "", false, "cannot be mounted"},
		{"in an unusual place", noBpffs + "41 22 0:33 / /mnt/b\\040f rw - bpf bpf rw\n", noBpffs + "41 22 0:33 / /mnt/b\\040f rw - bpf bpf rw\n", true, "/mnt/b f/xskfwd", true, "whole host"},
		{"the usual place before others", hostMounts + "42 26 0:34 / /run/bpf rw - bpf bpf rw\n", hostMounts, true, "/sys/fs/bpf/xskfwd", true, "whole host"},
		{"the upper of two mounts, a private one", hostMounts + "43 41 0:35 / /sys/fs/bpf rw - bpf bpf rw\n", hostMounts, true, "/sys/fs/bpf/xskfwd", false, "private"},
		{"only a directory of a bpffs", noBpffs + "44 26 0:33 /sub /run/sub rw - bpf bpf rw\n", hostMounts, false, "", false, "no bpffs is mounted"},
		{"garbage", "x\n\n - bpf \n1 2 3 - bpf bpf\n", "", false, "", false, "no bpffs is mounted"},
	}
	for _, row := range rows {
		t.Run(strings.ReplaceAll(row.name, " ", "-"), func(t *testing.T) {
			tmp := t.TempDir()
			m := mounts{own: filepath.Join(tmp, "own"), initial: filepath.Join(tmp, "initial"), target: "/sys/fs/bpf"}
			if strings.Contains(row.reason, "cannot") {
				m.target = filepath.Join(tmp, "missing")
			}
			for path, text := range map[string]string{m.own: row.own, m.initial: row.initial} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			dir, survives, reason, err := m.pinRoot(row.mayMount)
			if err != nil || dir != row.dir || survives != row.survives || !strings.Contains(reason, row.reason) {
				t.Errorf("got %q, %v, %q, %v, want %q, %v, %q", dir, survives, reason, err, row.dir, row.survives, row.reason)
			}
		})
	}
}

func TestPinRootWithoutASightOfPid1DoesNotPromiseSurvival(t *testing.T) {
	tmp := t.TempDir()
	m := mounts{own: filepath.Join(tmp, "own"), initial: filepath.Join(tmp, "missing"), target: "/sys/fs/bpf"}
	if err := os.WriteFile(m.own, []byte(hostMounts), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, survives, reason, err := m.pinRoot(true)
	if err != nil || dir == "" || survives || !strings.Contains(reason, "no telling") {
		t.Errorf("got %q, %v, %q, %v, want a place without a promise", dir, survives, reason, err)
	}
}

// The lab is what `ip netns exec` makes: a private mount namespace.
func TestIntegrationPinRootInAPrivateNamespaceDoesNotSurvive(t *testing.T) {
	inLab(t, func(l *lab) {
		dir, survives, reason, err := PinRoot(true)
		if err != nil || dir != l.root() || survives || !strings.Contains(reason, "private mount namespace") {
			t.Errorf("with a bpffs: %q, %v, %q, %v, want no survival", dir, survives, reason, err)
		}
		l.must(unix.Unmount(l.bpffs, unix.MNT_DETACH))
		dir, survives, reason, err = PinRoot(true)
		if err != nil || dir != "" || survives || !strings.Contains(reason, "private mount namespace") {
			t.Errorf("without a bpffs: %q, %v, %q, %v, want no place", dir, survives, reason, err)
		}
	})
}

func TestIntegrationPinRootMountsWhereItMay(t *testing.T) {
	inLab(t, func(l *lab) {
		l.must(unix.Unmount(l.bpffs, unix.MNT_DETACH))
		m := mounts{own: thisMountinfo, initial: thisMountinfo, target: l.bpffs} // the lab is the whole host
		dir, survives, reason, err := m.pinRoot(true)
		if err != nil || dir != l.root() || !survives {
			l.fatal("got %q, %v, %q, %v, want %q mounted", dir, survives, reason, err, l.root())
		}
		dir, survives, reason, err = m.pinRoot(false)
		if err != nil || dir != l.root() || !survives {
			l.fatal("second look: %q, %v, %q, %v, want %q", dir, survives, reason, err, l.root())
		}
		r0, _ := l.veth("r0", "a0", 1)
		l.must(l.attach(Options{Ifindex: r0, Ifname: "r0", Queues: 1, PinDir: l.pinDir("r0")}).Detach())
	})
}

// Two daemons that start together must not mount one bpffs over the other's.
func TestIntegrationPinRootWaitsForAnotherThatIsMounting(t *testing.T) {
	inLab(t, func(l *lab) {
		l.must(unix.Unmount(l.bpffs, unix.MNT_DETACH))
		bare, err := os.Open(l.bpffs)
		l.must(err)
		l.cleanup(func() { bare.Close() })
		l.must(unix.Flock(int(bare.Fd()), unix.LOCK_EX))

		done := l.pinRootOnAnotherThread()
		l.wait("it to stand at the lock", func() bool {
			select {
			case err := <-done:
				l.fatal("it did not wait (%v)", err)
			default:
			}
			locks, err := os.ReadFile("/proc/locks")
			l.must(err)
			return strings.Contains(string(locks), fmt.Sprintf("-> FLOCK  ADVISORY  WRITE %d ", os.Getpid()))
		})
		l.must(unix.Mount("bpf", l.bpffs, "bpf", 0, ""))
		l.must(unix.Flock(int(bare.Fd()), unix.LOCK_UN))
		l.must(<-done)
		own, err := readMounts(thisMountinfo)
		l.must(err)
		if n := len(slices.DeleteFunc(own, func(m mount) bool { return !m.bpffs })); n != 1 {
			t.Errorf("%d bpffs are mounted, want one", n)
		}
	})
}

func (l *lab) pinRootOnAnotherThread() <-chan error {
	mine := fmt.Sprintf("/proc/self/task/%d", unix.Gettid())
	m := mounts{own: mine + "/mountinfo", initial: mine + "/mountinfo", target: l.bpffs}
	done := make(chan error, 1)
	netlab.OnOwnThread(func() {
		err := joinMounts(mine + "/ns/mnt")
		if err == nil {
			_, _, _, err = m.pinRoot(true)
		}
		done <- err
	})
	return done
}

func joinMounts(path string) error {
	ns, err := os.Open(path)
	if err != nil {
		return err
	}
	defer ns.Close()
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	return unix.Setns(int(ns.Fd()), unix.CLONE_NEWNS)
}

func TestPortDirIsAnswerableToBpffsAndUnique(t *testing.T) {
	seen := make(map[string]string)
	for _, ifname := range []string{"eth0", "eth0.100", "eth0%2e100", "eth0-100", "eth0_100", "e\"h\\0", "ünï", "a@b", "+"} {
		dir, err := PortDir("/root", ifname)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(dir)
		if filepath.Dir(dir) != "/root" || strings.ContainsAny(name, "./") || !isPortDir(name) || len(name) > 255 {
			t.Errorf("%q gets %q: not a name for a pin directory", ifname, dir)
		}
		if other, taken := seen[name]; taken {
			t.Errorf("%q and %q share %q", ifname, other, name)
		}
		seen[name] = ifname
	}
}

func TestIntegrationPortDirDiffersBetweenNetworkNamespaces(t *testing.T) {
	inLab(t, func(l *lab) {
		here := l.pinDir("r0")
		l.elsewhere(func() {
			if there := l.pinDir("r0"); there == here {
				t.Errorf("r0 has %s in both namespaces", here)
			}
		})
	})
}
