// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

// buildDir is where the daemon is built. Set by testMain.
var buildDir string

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "xskfwd-e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	buildDir = dir
	defer os.RemoveAll(dir)
	return labtest.Run(m)
}

// daemonBinary is the daemon, built once for all scenarios.
var daemonBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildDir, "xskfwd")
	cmd := exec.Command("go", "build", "-o", path, "github.com/xskfwd/xskfwd/cmd/xskfwd")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

// metricsAddr is inside the router's namespace.
const metricsAddr = "127.0.0.1:9750"

var (
	macA = net.HardwareAddr{2, 0, 0, 0, 0, 0xa}
	macB = net.HardwareAddr{2, 0, 0, 0, 0, 0xb}
)

// rig is a - r0 [router] r1 - b: two hosts and the namespace of the daemon.
type rig struct {
	t            *testing.T
	a, router, b *netlab.NS
	daemon       *netlab.Process
	env          []string // of the daemon and its commands
}

// newRig makes the namespaces. The far ends run NAPI, so that they take what is
// redirected to them when the daemon is gone.
func newRig(t *testing.T, opts netlab.VethOptions) *rig {
	labtest.Privileged(t)
	r := &rig{t: t, a: labtest.NS(t), router: labtest.NS(t), b: labtest.NS(t)}
	r.env = append(os.Environ(), "RUNTIME_DIRECTORY="+t.TempDir())
	left, right := opts, opts
	left.B.GRO, left.B.MAC = true, macA
	right.B.GRO, right.B.MAC = true, macB
	labtest.Veth(t, r.router, "r0", r.a, "a0", left)
	labtest.Veth(t, r.router, "r1", r.b, "b0", right)
	if err := r.router.SetUp("lo"); err != nil {
		t.Fatal(err)
	}
	return r
}

// start runs the daemon with a wire r0=r1 and waits until it forwards.
func (r *rig) start(args ...string) {
	r.t.Helper()
	r.launch(append([]string{"-p", "r0", "-p", "r1", "--wire", "r0=r1"}, args...)...)
	r.waitForwarding()
}

// launch runs the daemon with these arguments and does not wait.
func (r *rig) launch(args ...string) {
	r.t.Helper()
	path, err := daemonBinary()
	if err != nil {
		r.t.Fatal(err)
	}
	args = append([]string{"run", "--metrics", metricsAddr}, args...)
	r.daemon = labtest.StartProcess(r.t, r.router, netlab.Command{Path: path, Args: args, Env: r.env})
}

func (r *rig) waitForwarding() {
	r.t.Helper()
	if err := r.daemon.WaitLog(labtest.Context(r.t), "msg=forwarding"); err != nil {
		r.t.Fatalf("the daemon does not forward: %v\n%s", err, r.daemon.Log())
	}
}

// stop ends the daemon as a service manager would. Leaving with 0 means that its
// own census and ledger were exact.
func (r *rig) stop() {
	r.t.Helper()
	if err := r.daemon.Stop(labtest.Context(r.t)); err != nil {
		r.t.Fatalf("the daemon did not stop cleanly: %v\n%s", err, r.daemon.Log())
	}
}

// kill ends the daemon as a crash would.
func (r *rig) kill() {
	r.t.Helper()
	if err := r.daemon.Signal(unix.SIGKILL); err != nil {
		r.t.Fatal(err)
	}
	<-r.daemon.Done()
}

// flow is a stream of numbered frames from one host to the other.
type flow struct {
	rig      *rig
	stream   *bench.Stream
	sender   *bench.Sender
	recorder *bench.Recorder
}

// forth is a flow from a to b, back one from b to a.
func (r *rig) forth(cfg bench.StreamConfig) *flow {
	r.t.Helper()
	cfg.ID, cfg.Src, cfg.Dst = 1, macA, macB
	return r.flow(cfg, r.a, "a0", r.b, "b0")
}

func (r *rig) back(cfg bench.StreamConfig) *flow {
	r.t.Helper()
	cfg.ID, cfg.Src, cfg.Dst = 2, macB, macA
	return r.flow(cfg, r.b, "b0", r.a, "a0")
}

func (r *rig) flow(cfg bench.StreamConfig, from *netlab.NS, fromIf string, to *netlab.NS, toIf string) *flow {
	r.t.Helper()
	stream, err := bench.NewStream(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	recorder, err := bench.NewRecorder(to, toIf, stream)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = recorder.Close() })
	sender, err := bench.NewSender(from, fromIf, stream)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = sender.Close() })
	return &flow{rig: r, stream: stream, sender: sender, recorder: recorder}
}

// send sends frames back to back.
func (f *flow) send(frames int) {
	f.rig.t.Helper()
	if err := f.sender.Send(labtest.Context(f.rig.t), frames); err != nil {
		f.rig.t.Fatal(err)
	}
}

// arrive waits until all that was sent has arrived.
func (f *flow) arrive() {
	f.rig.t.Helper()
	if err := f.recorder.Wait(labtest.Context(f.rig.t), f.stream, f.sender.Sent()); err != nil {
		f.rig.t.Fatalf("%v\n%s", err, f.rig.daemon.Log())
	}
}

func (f *flow) report() bench.Report {
	f.rig.t.Helper()
	report, err := f.recorder.Report(f.stream, f.sender.Sent())
	if err != nil {
		f.rig.t.Fatal(err)
	}
	return report
}

// complete fails unless everything has arrived once, in order, byte for byte.
func (f *flow) complete() {
	f.rig.t.Helper()
	if report := f.report(); !report.Complete() {
		f.rig.t.Fatalf("%s\n%s", report, f.rig.daemon.Log())
	}
}

// name makes arguments a subtest's name.
func name(args []string) string {
	if len(args) == 0 {
		return "defaults"
	}
	return strings.TrimLeft(strings.Join(args, " "), "-")
}

// numbers are the daemon's metrics at one moment.
type numbers map[string]*dto.MetricFamily

// scrape reads the metrics, as Prometheus would.
func (r *rig) scrape() numbers {
	r.t.Helper()
	n, err := r.tryScrape()
	if err != nil {
		r.t.Fatalf("scrape: %v\n%s", err, r.daemon.Log())
	}
	return n
}

func (r *rig) tryScrape() (numbers, error) {
	n, err := bench.Scrape(r.router, metricsAddr)
	return numbers(n), err
}

// sum adds up all series of a metric of ours that have these labels (name,
// value, ...).
func (n numbers) sum(name string, labels ...string) float64 {
	return bench.Metrics(n).Sum("xskfwd_"+name, labels...)
}
