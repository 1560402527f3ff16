// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// DetachAll detaches every program that is pinned under root (see [PinRoot])
// and removes the pins and their directories. It says what it removed, one pin
// a line, also when it fails. A port that a running daemon holds is left to it
// ([ErrInUse]), and so is what is not ours.
func DetachAll(root string) (removed []string, err error) {
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
		gone, err := detachPort(filepath.Join(root, e.Name()))
		removed, errs = append(removed, gone...), append(errs, err)
	}
	if err := os.Remove(root); err != nil {
		errs = append(errs, fmt.Errorf("remove pin directory: %w", err))
	}
	return removed, errors.Join(errs...)
}

func detachPort(dir string) (removed []string, err error) {
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	versions, err := versionDirs(dir)
	errs := []error{err}
	for _, version := range versions {
		gone, err := detachVersion(version)
		removed, errs = append(removed, gone...), append(errs, err)
	}
	return removed, errors.Join(append(errs, lock.release())...)
}

func detachVersion(dir string) (removed []string, err error) {
	found, err := openLink(dir)
	if err != nil {
		return nil, err
	}
	if found != nil {
		if err := errors.Join(found.Detach(), found.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
	}
	return removePins(dir)
}
