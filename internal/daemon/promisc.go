// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// hostState remembers which interfaces this program has made promiscuous: a
// wire carries frames for other stations, which a NIC's filter would drop, and
// a program that joins the wire in the kernel after a crash needs that too. So
// the flag cannot be left to a socket that closes with the process; it is set on
// the interface, and a note beside it says who did it and has to undo it.
//
// A note is an empty file, NETNS-IFINDEX.promisc (cookie and number): written
// before the flag is set, removed after it is cleared.
type hostState struct {
	dir string
}

const promiscSuffix = ".promisc"

// stateDir is where notes are kept: the service's runtime directory, or the same
// place for a daemon started by hand.
func stateDir() string {
	if dir, _, _ := strings.Cut(os.Getenv("RUNTIME_DIRECTORY"), ":"); dir != "" {
		return dir
	}
	return "/run/xskfwd"
}

// errNoNote says that the flag is set, but nobody will know after a crash.
var errNoNote = errors.New("no note of it can be made, so that after a crash nobody puts it back")

// makePromiscuous sets IFF_PROMISC unless somebody has set it already, who then
// is the one to clear it. set says whether we are. An error that wraps errNoNote
// leaves it set.
func (h hostState) makePromiscuous(f facts) (set bool, err error) {
	note, err := h.note(f.ifindex)
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(note); f.promisc && errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	noteErr := os.MkdirAll(h.dir, 0o755)
	if noteErr == nil {
		noteErr = os.WriteFile(note, nil, 0o644)
	}
	if err := setPromisc(f.ifindex, true); err != nil {
		_ = os.Remove(note) // a note of what was not done would have it undone one day
		return false, err
	}
	if noteErr != nil {
		return true, fmt.Errorf("port %s: promiscuous mode: %w: %w", f.ifname, errNoNote, noteErr)
	}
	return true, nil
}

// restore clears IFF_PROMISC where a note says that it was set by us.
func (h hostState) restore(ifindex int) error {
	note, err := h.note(ifindex)
	if err != nil {
		return err
	}
	if _, err := os.Stat(note); err != nil {
		return nil
	}
	return h.clear(ifindex)
}

// clear clears IFF_PROMISC and forgets the note, if there is one. An interface
// that was deleted has taken the flag with it.
func (h hostState) clear(ifindex int) error {
	note, err := h.note(ifindex)
	if err != nil {
		return err
	}
	if err := setPromisc(ifindex, false); err != nil && !errors.As(err, new(netlink.LinkNotFoundError)) {
		return err
	}
	if err := os.Remove(note); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// restoreAll does so for every interface of this network namespace, and forgets
// notes about none.
func (h hostState) restoreAll() (restored []string, err error) {
	ns, err := netnsID()
	if err != nil {
		return nil, err
	}
	notes, err := filepath.Glob(filepath.Join(h.dir, fmt.Sprintf("%d-*%s", ns, promiscSuffix)))
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, note := range notes {
		text := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(note), fmt.Sprintf("%d-", ns)), promiscSuffix)
		ifindex, err := strconv.Atoi(text)
		if err != nil {
			continue // not one of ours
		}
		if err := h.restore(ifindex); err != nil {
			errs = append(errs, err)
			continue
		}
		restored = append(restored, fmt.Sprintf("promiscuous mode of interface %d", ifindex))
	}
	return restored, errors.Join(errs...)
}

func (h hostState) note(ifindex int) (string, error) {
	ns, err := netnsID()
	if err != nil {
		return "", err
	}
	return filepath.Join(h.dir, fmt.Sprintf("%d-%d%s", ns, ifindex, promiscSuffix)), nil
}

// netnsID is the cookie of the calling thread's network namespace. Unlike its
// inode, it is never used again while the machine runs.
func netnsID() (uint64, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("read network namespace: %w", err)
	}
	defer unix.Close(fd)
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return 0, fmt.Errorf("read network namespace: SO_NETNS_COOKIE: %w", err)
	}
	return cookie, nil
}

func setPromisc(ifindex int, on bool) error {
	link, err := netlink.LinkByIndex(ifindex)
	if err != nil {
		return fmt.Errorf("interface %d: %w", ifindex, err)
	}
	set := netlink.SetPromiscOff
	if on {
		set = netlink.SetPromiscOn
	}
	if err := set(link); err != nil {
		return fmt.Errorf("port %s: set promiscuous mode %v: %w", link.Attrs().Name, on, err)
	}
	return nil
}
