// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/demo"
)

func TestPlainUserIsToldThatRootIsNeeded(t *testing.T) {
	const plain = 1000
	for _, test := range []struct {
		command string
		euid    int
		err     error
		want    string
	}{
		{"demo", plain, fmt.Errorf("unshare: %w", unix.EPERM), "root is needed: unshare: operation not permitted"},
		{"detach", plain, fmt.Errorf("open /sys/fs/bpf: %w", unix.EACCES), "root is needed: open /sys/fs/bpf: permission denied"},
		{"demo", plain, errors.New("7 frames are missing"), "7 frames are missing"},
		{"detach", 0, fmt.Errorf("open /sys/fs/bpf: %w", unix.EACCES), "open /sys/fs/bpf: permission denied"},
	} {
		w := newWorld(t)
		w.euid = func() int { return test.euid }
		w.demo = func(context.Context, demo.Options) error { return test.err }
		w.detach = func(context.Context, *slog.Logger, io.Writer) error { return test.err }
		code := w.main([]string{test.command})
		if code != exitFailure || w.err.String() != "xskfwd: "+test.want+"\n" {
			t.Errorf("%s as user %d: exit code %d, stderr %q, want %q", test.command, test.euid, code, w.err.String(), test.want)
		}
	}
}
