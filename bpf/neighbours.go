// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// gather looks through the places of the other ports. Places go by name, so
// that what was pinned for this interface before it was renamed lies in another
// one: it is moved here. What a place that nobody holds has left of a device or
// a namespace that is gone is removed.
//
// Owner: the lock of PinDir is held. A place is locked only when something in
// it is to be touched, since a lock held for a moment looks like a daemon.
func (p *Port) gather() error {
	root, own := filepath.Dir(p.opts.PinDir), filepath.Base(p.opts.PinDir)
	if !isPortDir(own) {
		return nil // not made by PortDir: what is beside it is not known
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return fmt.Errorf("read pin directory: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() || !isPortDir(e.Name()) || e.Name() == own {
			continue
		}
		dir := filepath.Join(root, e.Name())
		if !p.concerns(dir) {
			continue
		}
		if err := p.sort(dir); err != nil && !errors.Is(err, ErrInUse) {
			return err
		}
	}
	return nil
}

// concerns says whether there is something to move or to remove. What cannot be
// read is left to [DetachAll] to report.
func (p *Port) concerns(portDir string) bool {
	versions, _ := versionDirs(portDir)
	for _, dir := range versions {
		if stale, ours := p.judge(dir); stale || ours {
			return true
		}
	}
	return false
}

// judge tells pins of a device that is gone, and pins of this interface. The
// number of the program settles the latter: an index is unique in a namespace
// only, and devices move between namespaces.
func (p *Port) judge(dir string) (stale, ours bool) {
	found, err := openLink(dir)
	if err != nil || found == nil {
		return false, false
	}
	defer found.Close()
	if found.ifindex != p.opts.Ifindex {
		return found.ifindex == 0, false
	}
	on, err := attachedTo(p.opts.Ifindex)
	return false, err == nil && on.program == found.program
}

// sort judges again, under the lock, and acts on it.
func (p *Port) sort(portDir string) (err error) {
	lock, err := tryLock(portDir)
	if lock == nil || err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	versions, err := versionDirs(portDir)
	for _, dir := range versions {
		switch stale, ours := p.judge(dir); {
		case ours:
			err = errors.Join(err, p.moveHere(dir))
		case stale:
			_, _ = removePins(dir) // no reason not to start
		}
	}
	return err
}

// moveHere moves the pins of a version, unless a living link is in the way:
// that of an interface which had this name before, as [Port.passOver] will say.
func (p *Port) moveHere(from string) error {
	to := filepath.Join(p.opts.PinDir, filepath.Base(from))
	there, err := openLink(to)
	if err != nil {
		return err
	}
	if there != nil {
		alive := there.ifindex != 0
		if err := there.Close(); alive || err != nil {
			return err
		}
	}
	if _, err := removePins(to); err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return fmt.Errorf("make pin directory: %w", err)
	}
	names := pinNames()
	for _, name := range append(names[1:], names[0]) { // the link last
		err := os.Rename(filepath.Join(from, name), filepath.Join(to, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("move pin of renamed interface: %w", err)
		}
	}
	return removeIfEmpty(from)
}
