// SPDX-License-Identifier: Apache-2.0

package netlab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// namedDir is where ip-netns and nsenter users look for named namespaces.
const namedDir = "/var/run/netns"

// errGoexit is what Do reports when its function ends the goroutine instead of returning.
var errGoexit = errors.New("function ended its goroutine")

// NS is a network namespace with its loopback device up.
type NS struct {
	name string // empty: anonymous

	mu sync.RWMutex
	fd int // keeps the namespace alive; -1 after Close. Written under mu.
}

// NewNS makes a namespace. With a name it appears in /var/run/netns, as one
// made by ip-netns would; without, it lives until Close or until the process
// ends.
func NewNS(name string) (*NS, error) {
	if name != filepath.Base(name) && name != "" {
		return nil, fmt.Errorf("namespace %q: the name must be a plain file name", name)
	}
	ns := &NS{name: name, fd: -1}
	errc := make(chan error, 1)
	OnOwnThread(func() { errc <- ns.create() })
	if err := <-errc; err != nil {
		return nil, fmt.Errorf("namespace %q: %w", name, err)
	}
	return ns, nil
}

// create runs on a thread that dies afterwards.
func (ns *NS) create() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if err := ns.publish(); err != nil {
		unix.Close(fd)
		return err
	}
	ns.fd = fd
	if err := linkUp("lo"); err != nil {
		return errors.Join(err, ns.Close())
	}
	return nil
}

// publish bind-mounts the calling thread's namespace at its name.
func (ns *NS) publish() error {
	if ns.name == "" {
		return nil
	}
	if err := os.MkdirAll(namedDir, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(ns.Path(), os.O_RDONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	f.Close()
	if err := unix.Mount("/proc/thread-self/ns/net", ns.Path(), "none", unix.MS_BIND, ""); err != nil {
		return errors.Join(fmt.Errorf("bind mount: %w", err), os.Remove(ns.Path()))
	}
	return nil
}

// Name is the name given to NewNS.
func (ns *NS) Name() string { return ns.name }

// Path is a file that stands for the namespace, as nsenter --net= takes it.
func (ns *NS) Path() string {
	if ns.name != "" {
		return filepath.Join(namedDir, ns.name)
	}
	ns.mu.RLock()
	defer ns.mu.RUnlock()
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), ns.fd)
}

// Do runs f inside the namespace, on a thread of its own, and waits for it.
// What f opens (sockets, files) stays in the namespace and may be used
// anywhere afterwards. f must not call testing.TB.FailNow or its kin.
func (ns *NS) Do(f func() error) error {
	errc := make(chan error, 1)
	OnOwnThread(func() {
		err := errGoexit
		defer func() { errc <- err }()
		if err = ns.Enter(); err == nil {
			err = errGoexit
			err = f()
		}
	})
	return <-errc
}

// Enter moves the calling thread into the namespace for good. It is for
// functions given to OnOwnThread; Do is what most callers want.
func (ns *NS) Enter() error {
	ns.mu.RLock()
	defer ns.mu.RUnlock()
	if ns.fd < 0 {
		return fmt.Errorf("namespace %q: %w", ns.name, os.ErrClosed)
	}
	if err := unix.Setns(ns.fd, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("namespace %q: setns: %w", ns.name, err)
	}
	return nil
}

// Close gives the namespace up: it is unmounted, its name is removed, and the
// kernel deletes it, with the devices in it, when its last process has gone.
func (ns *NS) Close() error {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if ns.fd < 0 {
		return nil
	}
	err := unix.Close(ns.fd)
	ns.fd = -1
	if ns.name == "" {
		return err
	}
	path := filepath.Join(namedDir, ns.name)
	if e := unix.Unmount(path, unix.MNT_DETACH); e != nil {
		err = errors.Join(err, fmt.Errorf("namespace %q: unmount: %w", ns.name, e))
	}
	return errors.Join(err, os.Remove(path))
}

// linkUp sets a device of the calling thread's namespace up.
func linkUp(ifname string) error {
	link, err := netlink.LinkByName(ifname)
	if err != nil {
		return fmt.Errorf("device %s: %w", ifname, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("device %s: set up: %w", ifname, err)
	}
	return nil
}
