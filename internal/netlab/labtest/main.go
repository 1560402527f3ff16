// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/xskfwd/xskfwd/internal/netlab"
)

// Main runs a package's tests and fails them if they leave a goroutine, a
// file descriptor, a thread in a foreign namespace, or a named namespace
// behind. Call it from TestMain.
func Main(m *testing.M) {
	os.Exit(Run(m))
}

// Run is Main for a TestMain that has something to do afterwards. It returns the
// exit code.
func Run(m *testing.M) int {
	before, err := takeSnapshot()
	if err != nil {
		fmt.Fprintln(os.Stderr, "labtest:", err)
		return 1
	}
	code := m.Run()
	if code != 0 {
		return code // a failed test may well leave something; its own message matters more
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "labtest:", err)
		return 1
	}
	if left := before.waitForNone(); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "labtest: tests left behind:\n  %s\n", strings.Join(left, "\n  "))
		return 1
	}
	return 0
}

// snapshot is what the process holds: "fd", "thread in" and "namespace"
// lines, each with its count.
type snapshot map[string]int

func takeSnapshot() (snapshot, error) {
	// The runtime opens its own descriptors (epoll, eventfd) with the first pollable file.
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	r.Close()
	w.Close()
	return look(), nil
}

func look() snapshot {
	s := snapshot{}
	for _, link := range links("/proc/self/fd/*") {
		s["fd "+link]++
	}
	for _, link := range links("/proc/self/task/*/ns/net") {
		s["thread in "+link] = 1
	}
	names, _ := filepath.Glob("/var/run/netns/" + namePrefix() + "*")
	for _, name := range names {
		s["namespace "+name]++
	}
	return s
}

// links reads symbolic links; those that vanish meanwhile are left out. A
// socket or pipe is named by its kind, since a lasting one may be reopened.
func links(pattern string) []string {
	paths, _ := filepath.Glob(pattern)
	var targets []string
	for _, p := range paths {
		target, err := os.Readlink(p)
		if err != nil {
			continue
		}
		if kind, _, ok := strings.Cut(target, ":["); ok && (kind == "socket" || kind == "pipe") {
			target = kind
		}
		targets = append(targets, target)
	}
	return targets
}

// waitForNone returns what there is now and was not in the snapshot, after
// giving dying threads and finalisers the time they need.
func (s snapshot) waitForNone() []string {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	var left []string
	_ = netlab.WaitFor(ctx, func() (bool, error) {
		left = left[:0]
		for what, n := range look() {
			if n > s[what] {
				left = append(left, fmt.Sprintf("%s (%d, were %d)", what, n, s[what]))
			}
		}
		return len(left) == 0, nil
	})
	slices.Sort(left)
	return left
}
