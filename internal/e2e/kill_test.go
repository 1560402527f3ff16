// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// A killed daemon does not cut the wire: the pinned program joins it in the
// kernel. The next daemon takes the wire back, and detach removes what a last
// one left. What is lost is at most what the rings held.
func TestIntegrationWireOutlivesItsDaemon(t *testing.T) {
	r := newRig(t, netlab.VethOptions{})
	r.start()
	f := r.forth(bench.StreamConfig{Flows: 4, Size: bench.IMIX})
	ctx, cancel := context.WithCancel(labtest.Context(t))
	sent := make(chan error, 1)
	go func() { sent <- f.sender.SendPaced(ctx, 1<<24, 20_000) }()

	const some = 5_000
	arrivedMore := func(what string) {
		t.Helper()
		want := f.report().Arrived + some
		labtest.WaitFor(t, what, func() bool { return f.report().Arrived >= want })
	}
	arrivedMore("frames through the daemon")
	r.kill()
	arrivedMore("frames through the kernel")
	r.start()
	if !strings.Contains(r.daemon.Log(), "adopted=true") {
		t.Errorf("the next daemon did not adopt the program:\n%s", r.daemon.Log())
	}
	arrivedMore("frames through the next daemon")
	labtest.WaitFor(t, "the next daemon to receive frames", func() bool {
		return r.scrape().sum("port_receive_packets_total", "port", "r0") >= some
	})
	r.kill()
	arrivedMore("frames through the kernel again")
	cancel()
	<-sent

	const rings = 2 * 2048 // RX and TX ring of one direction, at each of two kills
	if err := f.recorder.WaitQuiet(labtest.Context(t), quiet); err != nil {
		t.Fatal(err)
	}
	report := f.report()
	if !report.Intact() || report.Missing > 2*rings {
		t.Errorf("over two kills: %s", report)
	}
	t.Logf("over two kills and a restart: %s", report)
	r.detach("link")
	r.nothingAttached()
}

// SIGTERM takes everything off the ports, unless told to leave the program.
func TestIntegrationStopLeavesNothingUnlessAsked(t *testing.T) {
	r := newRig(t, netlab.VethOptions{})
	r.start()
	r.stop()
	r.nothingAttached()

	r.start("--on-exit", "keep")
	r.stop()
	f := r.forth(bench.StreamConfig{})
	f.send(1000)
	f.arrive()
	f.complete()
	r.detach("link")
	r.nothingAttached()
}

// detach runs `xskfwd detach` in the router, which must say that it removed
// something with this in its name.
func (r *rig) detach(what string) {
	r.t.Helper()
	out := r.command("detach")
	if !strings.Contains(out, "removed") || !strings.Contains(out, what) {
		r.t.Errorf("detach removed no %s:\n%s", what, out)
	}
}

// nothingAttached fails if a program, a pin or promiscuity is left on a port.
func (r *rig) nothingAttached() {
	r.t.Helper()
	for _, ifname := range []string{"r0", "r1"} {
		link, err := r.router.Link(ifname)
		if err != nil {
			r.t.Fatal(err)
		}
		if link.Xdp != nil && link.Xdp.Attached {
			r.t.Errorf("%s: program %d is attached", ifname, link.Xdp.ProgId)
		}
		if link.Promisc != 0 {
			r.t.Errorf("%s: promiscuity %d", ifname, link.Promisc)
		}
	}
	if out := r.command("detach"); strings.Contains(out, r.pins()) || strings.Contains(out, "promiscuous mode") {
		r.t.Errorf("something was left to remove:\n%s", out)
	}
}

// command runs a subcommand of the daemon's binary in the router.
func (r *rig) command(args ...string) string {
	r.t.Helper()
	path, err := daemonBinary()
	if err != nil {
		r.t.Fatal(err)
	}
	var out []byte
	err = r.router.Do(func() error {
		cmd := exec.Command(path, args...)
		cmd.Env = r.env
		var err error
		out, err = cmd.CombinedOutput()
		return err
	})
	if err != nil {
		r.t.Fatalf("xskfwd %v: %v\n%s", args, err, out)
	}
	return string(out)
}
