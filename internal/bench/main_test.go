// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"net"
	"os"
	"testing"

	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(bridgeChild) != "" {
		bridge()
		return
	}
	labtest.Main(m)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func macA() net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 0, 0xa} }
func macB() net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 0, 0xb} }

func newStream(t testing.TB, cfg StreamConfig) *Stream {
	t.Helper()
	cfg.Src, cfg.Dst = macA(), macB()
	s, err := NewStream(cfg)
	must(t, err)
	return s
}

// wire is two namespaces joined by a0-b0.
func wire(t testing.TB, opts netlab.VethOptions) (a, b *netlab.NS) {
	t.Helper()
	labtest.Privileged(t)
	a, b = labtest.NS(t), labtest.NS(t)
	labtest.Veth(t, a, "a0", b, "b0", opts)
	return a, b
}

func newSender(t testing.TB, ns *netlab.NS, ifname string, stream *Stream) *Sender {
	t.Helper()
	s, err := NewSender(ns, ifname, stream)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func newRecorder(t testing.TB, ns *netlab.NS, ifname string, streams ...*Stream) *Recorder {
	t.Helper()
	r, err := NewRecorder(ns, ifname, streams...)
	must(t, err)
	t.Cleanup(func() { must(t, r.Close()) })
	return r
}

func report(t testing.TB, r *Recorder, stream *Stream, sent uint32) Report {
	t.Helper()
	rep, err := r.Report(stream, sent)
	must(t, err)
	return rep
}
