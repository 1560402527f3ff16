// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// manager is a service manager: it reads what the daemon tells it.
type manager struct {
	t    *testing.T
	conn *net.UnixConn
}

func (r *rig) manage(env ...string) manager {
	r.t.Helper()
	path := filepath.Join(r.t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	limit, _ := labtest.Context(r.t).Deadline()
	if err := conn.SetReadDeadline(limit); err != nil {
		r.t.Fatal(err)
	}
	r.env = append(append(r.env, "NOTIFY_SOCKET="+path), env...)
	return manager{r.t, conn}
}

// next is the next message, as lines.
func (m manager) next() []string {
	m.t.Helper()
	buf := make([]byte, 4096)
	n, err := m.conn.Read(buf)
	if err != nil {
		m.t.Fatalf("waiting for the daemon to notify: %v", err)
	}
	return strings.Split(string(buf[:n]), "\n")
}

// The service manager hears READY when frames are forwarded, and never of a start
// that fails; its watchdog is fed; and it hears STOPPING.
func TestIntegrationServiceManagerIsKeptInformed(t *testing.T) {
	r := newRig(t, netlab.VethOptions{})
	m := r.manage("WATCHDOG_USEC=200000")
	f := r.forth(bench.StreamConfig{})
	r.refuses(failure, []string{"no such interface"}, "-p", "r0", "-p", "r9", "--wire", "r0=r9")
	r.launch("-p", "r0", "-p", "r1", "--wire", "r0=r1")
	if got := m.next(); got[0] != "READY=1" || !slices.Contains(got, "STATUS=forwarding r0=r1") {
		t.Errorf("first message %q, want READY and what it forwards", got)
	}
	f.send(100) // what comes after READY arrives
	f.arrive()
	f.complete()
	for range 5 {
		if got := m.next(); got[0] != "WATCHDOG=1" {
			t.Errorf("message %q while it forwards, want it to feed the watchdog", got)
		}
	}
	r.stop()
	got := m.next()
	for got[0] == "WATCHDOG=1" {
		got = m.next()
	}
	if got[0] != "STOPPING=1" {
		t.Errorf("message %q at the stop, want STOPPING", got)
	}
}
