// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/xskfwd/xskfwd/bpf"
)

// Detach removes what a daemon left behind: pinned programs, and promiscuous
// mode where that daemon had set it. It prints a line for each thing removed. A
// port that a running daemon has is left alone, and is an error.
func Detach(_ context.Context, _ *slog.Logger, out io.Writer) error {
	root, _, why, err := bpf.PinRoot(false)
	if err != nil {
		return err
	}
	var removed []string
	if root == "" {
		fmt.Fprintf(out, "no pins: %s\n", why)
	} else {
		removed, err = bpf.DetachAll(root)
	}
	if !errors.Is(err, bpf.ErrInUse) {
		restored, restoreErr := hostState{dir: stateDir()}.restoreAll()
		removed, err = append(removed, restored...), errors.Join(err, restoreErr)
	}
	for _, r := range removed {
		fmt.Fprintln(out, "removed", r)
	}
	if len(removed) == 0 && err == nil {
		fmt.Fprintln(out, "nothing to remove")
	}
	return err
}
