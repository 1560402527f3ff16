// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// DetachAll detaches every program that is pinned under root (see [PinRoot])
// for an interface in the network namespace of the calling thread, and removes
// the pins and their directories. It lists the pins it removed, also when it
// fails. A port that a running daemon holds is left to it ([ErrInUse]), and so
// is what is not ours. What belongs to another namespace is left to that one,
// unless the interface has gone.
func DetachAll(root string) (removed []string, err error) {
	own, err := netnsPrefix()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read pin directory: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if !e.IsDir() || !isPortDir(e.Name()) {
			continue
		}
		gone, err := detachPort(filepath.Join(root, e.Name()), !strings.HasPrefix(e.Name(), own))
		removed, errs = append(removed, gone...), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return removed, err
	}
	return removed, errors.Join(removeIfEmpty(root), leftovers(root, own))
}

// leftovers names what is below root and not ours, but for the pins of other
// namespaces.
func leftovers(root, own string) error {
	var errs []error
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && isPortDir(e.Name()) && !strings.HasPrefix(e.Name(), own) {
			return fs.SkipDir
		}
		if err == nil && !e.IsDir() {
			errs = append(errs, fmt.Errorf("%s is not ours: left alone", path))
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func detachPort(dir string, foreign bool) (removed []string, err error) {
	lock, err := lockDir(dir)
	if foreign && errors.Is(err, ErrInUse) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	versions, err := versionDirs(dir)
	errs := []error{err}
	for _, version := range versions {
		gone, err := detachVersion(version, foreign)
		removed, errs = append(removed, gone...), append(errs, err)
	}
	return removed, errors.Join(append(errs, lock.release())...)
}

func detachVersion(dir string, foreign bool) (removed []string, err error) {
	found, err := openLink(dir)
	if err != nil {
		return nil, err
	}
	if foreign && found != nil && found.ifindex != 0 {
		return nil, found.Close() // joins a wire over there
	}
	if found != nil {
		if err := errors.Join(found.Detach(), found.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
	}
	return removePins(dir)
}
