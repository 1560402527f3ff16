// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// rootName is the directory in a bpffs that everything of ours is in.
const rootName = "xskfwd"

// PinRoot says where pins may live: a directory (not made yet) in a mounted
// bpffs, which is mounted on /sys/fs/bpf first when there is none and mayMount
// allows it. survives tells whether pins there outlive this process, and
// reason, in words for a log, why they do or do not. An empty dir with a nil
// error means that there is no place for pins; reason says why.
func PinRoot(mayMount bool) (dir string, survives bool, reason string, err error) {
	m := mounts{own: "/proc/thread-self/mountinfo", initial: "/proc/1/mountinfo", target: "/sys/fs/bpf"}
	return m.pinRoot(mayMount)
}

// mounts is what PinRoot looks at.
type mounts struct {
	own     string // mountinfo of this thread
	initial string // mountinfo of pid 1: what is mounted there outlives us
	target  string // where bpffs belongs
}

// mount is a line of mountinfo.
type mount struct {
	id     string // unique in the system: a copied namespace has copies with other ids
	device string // major:minor, one for each instance of a file system
	dir    string
	bpffs  bool // and the whole of it, not a directory bound elsewhere
}

func (m mounts) pinRoot(mayMount bool) (dir string, survives bool, reason string, err error) {
	b, found, err := m.find()
	if err == nil && !found {
		reason, err = m.mount(mayMount)
		if err != nil || reason != "" {
			return "", false, reason, err
		}
		b, found, err = m.find()
	}
	if err != nil || !found {
		return "", false, "the bpffs on " + m.target + " was unmounted again", err
	}
	survives, reason = m.outlives(b)
	return filepath.Join(b.dir, rootName), survives, reason, nil
}

// find prefers the usual place, and there the mount on top.
func (m mounts) find() (best mount, found bool, err error) {
	own, err := readMounts(m.own)
	for _, b := range own {
		if b.bpffs && (!found || b.dir == m.target) {
			best, found = b, true
		}
	}
	return best, found, err
}

// outlives: pins live as long as their bpffs instance is mounted anywhere, so
// they outlive us if pid 1 has the same instance mounted.
func (m mounts) outlives(b mount) (survives bool, reason string) {
	initial, err := readMounts(m.initial)
	if err != nil {
		return false, fmt.Sprintf("no telling whether the bpffs on %s outlives this process: %v", b.dir, err)
	}
	if slices.ContainsFunc(initial, func(i mount) bool { return i.bpffs && i.device == b.device }) {
		return true, fmt.Sprintf("the bpffs on %s is mounted for the whole host", b.dir)
	}
	return false, fmt.Sprintf("the bpffs on %s is mounted in a private mount namespace only and ends with it", b.dir)
}

// mount mounts bpffs where it belongs, or says why not. In a private namespace
// it does not: the mount, and all pins, would go when the process goes.
func (m mounts) mount(may bool) (reason string, err error) {
	if !may {
		return "no bpffs is mounted", nil
	}
	own, err := readMounts(m.own)
	if err != nil {
		return "", err
	}
	initial, err := readMounts(m.initial)
	if err != nil {
		return fmt.Sprintf("no bpffs is mounted, and no telling whether one would outlive this process: %v", err), nil
	}
	if !sameNamespace(own, initial) {
		return "no bpffs is mounted, and this process is in a private mount namespace (ip netns exec makes one, nsenter --net does not): what it mounts ends with it", nil
	}
	if err := m.mountOnce(); err != nil {
		return fmt.Sprintf("no bpffs is mounted, and it cannot be mounted on %s: %v", m.target, err), nil
	}
	return "", nil
}

// mountOnce keeps processes that start at the same time from mounting one
// bpffs over the other, which would hide the pins in the lower one. They meet
// at a lock on the bare directory.
func (m mounts) mountOnce() error {
	bare, err := os.Open(m.target)
	if err != nil {
		return err
	}
	defer bare.Close()
	if err := unix.Flock(int(bare.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	if _, found, err := m.find(); found || err != nil {
		return err
	}
	return unix.Mount("bpf", m.target, "bpf", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0700")
}

// sameNamespace compares by mount ids, since pid 1's namespace link is not
// readable for everybody.
func sameNamespace(own, initial []mount) bool {
	ids := make(map[string]bool)
	for _, i := range initial {
		ids[i.id] = true
	}
	return slices.ContainsFunc(own, func(o mount) bool { return ids[o.id] })
}

func readMounts(path string) ([]mount, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	defer f.Close()
	return parseMounts(f)
}

// parseMounts reads the lines of proc_pid_mountinfo(5).
func parseMounts(r io.Reader) ([]mount, error) {
	var all []mount
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		left, right, ok := strings.Cut(lines.Text(), " - ")
		f := strings.Fields(left)
		if !ok || len(f) < 6 {
			continue
		}
		all = append(all, mount{
			id:     f[0],
			device: f[2],
			dir:    unescapeMount(f[4]),
			bpffs:  strings.HasPrefix(right, "bpf ") && f[3] == "/",
		})
	}
	return all, lines.Err()
}

// unescapeMount undoes the octal escapes of mountinfo.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
