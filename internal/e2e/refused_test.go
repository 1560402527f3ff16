// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// exit codes of a daemon that does not start
const (
	failure = 1 // the system refuses
	usage   = 2 // the request makes no sense
)

// A request that cannot be met is refused before it changes anything, in one
// line that names the object, the value and the way out.
func TestIntegrationBadRequestsAreRefused(t *testing.T) {
	wire := []string{"--wire", "r0=r1"}
	ports := []string{"-p", "r0", "-p", "r1", "--wire", "r0=r1"}
	for _, row := range []struct {
		name string
		args []string
		code int
		line []string // all of it in one line
	}{
		{"unknown-interface", []string{"-p", "r0", "-p", "r9", "--wire", "r0=r9"}, failure, []string{"r9", "no such interface", "r0", "r1"}},
		{"queue-beyond", append(wire, "-p", "r0:0-7", "-p", "r1"), failure, []string{"r0", "queue 2", "2 RX queue", "0 to 1", "ethtool -l r0"}},
		{"queue-empty", append(wire, "-p", "r0:", "-p", "r1"), usage, []string{"--port r0:", "queue"}},
		{"queue-twice", append(wire, "-p", "r0:0,0", "-p", "r1"), usage, []string{"--port r0:0,0", "queue"}},
		{"queue-negative", append(wire, "-p", "r0:-1", "-p", "r1"), usage, []string{"--port r0:-1", "queue"}},
		{"zerocopy", append(ports, "--zerocopy", "require"), failure, []string{"r0", "queue 0", "zero-copy", "not supported", "--zerocopy prefer"}},
		{"ring-size-511", append(ports, "--rx-ring", "511"), usage, []string{"--rx-ring 511", "power of two"}},
		{"ring-size-2-to-31", append(ports, "--fill-ring", "2147483648"), usage, []string{"--fill-ring 2147483648"}},
		{"cpu", append(ports, "--cpus", "200"), failure, []string{"--cpus", "cpu 200", "this process may run on"}},
		{"workers", append(ports, "--workers", "5"), failure, []string{"--workers", "5 workers for 4 queues", "1 to 4"}},
		{"umem", append(ports, "--umem-frames", "100"), failure, []string{"--umem-frames 100", "4 queues"}},
		{"wire-of-one", append(ports, "--wire", "r0=r0"), usage, []string{"--wire r0=r0"}},
		{"metrics", append(ports, "--metrics", "nowhere"), usage, []string{"--metrics nowhere", "HOST:PORT"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, netlab.VethOptions{Queues: 2})
			r.refuses(row.code, row.line, row.args...)
		})
	}
}

// refuses starts the daemon, which must end with this code, say all the words
// in one line, and leave nothing.
func (r *rig) refuses(code int, words []string, args ...string) {
	r.t.Helper()
	r.launch(args...)
	err := r.daemon.Wait(labtest.Context(r.t))
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != code {
		r.t.Errorf("ended with %v, want exit code %d\n%s", err, code, r.daemon.Log())
	}
	r.says(words...)
	r.nothingAttached()
}

// says fails unless one line of the daemon's output has all the words.
func (r *rig) says(words ...string) {
	r.t.Helper()
	for line := range strings.Lines(r.daemon.Log()) {
		found := true
		for _, w := range words {
			found = found && strings.Contains(line, w)
		}
		if found {
			return
		}
	}
	r.t.Errorf("no line has all of %q:\n%s", words, r.daemon.Log())
}
