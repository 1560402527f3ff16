// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// A daemon that is told to stop while it starts attaches nothing any more.
func TestIntegrationStopDuringStartIsHonoured(t *testing.T) {
	r := newRig(t, netlab.VethOptions{})
	// Mapping 200 MiB takes long enough to be interrupted, and says when it begins.
	r.launch("-p", "r0", "-p", "r1", "--wire", "r0=r1", "--umem-frames", "100000")
	if err := r.daemon.WaitLog(labtest.Context(t), "msg=metrics"); err != nil {
		t.Fatal(err)
	}
	if err := r.daemon.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := r.daemon.Wait(labtest.Context(t)); err != nil {
		t.Errorf("ended with %v", err)
	}
	if log := r.daemon.Log(); strings.Contains(log, "msg=forwarding") || strings.Contains(log, "program attached") {
		t.Errorf("went on after the signal:\n%s", log)
	}
	r.nothingAttached()
}
