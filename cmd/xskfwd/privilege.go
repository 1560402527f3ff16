// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
)

// needsRoot puts the cure before what a plain user was refused, which as it is
// names a system call or a directory. The daemon's own check of its capabilities
// does better, but is for the daemon only.
func (e *env) needsRoot(err error) error {
	if err == nil || e.euid() == 0 || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("root is needed: %w", err)
}
