// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// The transfer everybody tries first completes in both directions, over both
// families. The ends have their offloads off: a frame on the wire has its
// checksum and its size.
func TestIntegrationIperfCompletes(t *testing.T) {
	r := newHosts(t)
	iperf := iperf3(t)
	r.start()
	for i, family := range []string{"ipv4", "ipv6"} {
		for _, direction := range [][]string{nil, {"-R"}} {
			t.Run(strings.Join(append(direction, family), " "), func(t *testing.T) {
				r.t = t
				r.transfer(iperf, hostsB[i], direction...)
			})
		}
	}
	r.t = t
	n := r.scrape()
	if drops := n.sum("port_receive_drops_total", "reason", "too_long"); drops != 0 {
		t.Errorf("%.0f frames were too long", drops)
	}
	r.stop()
}

// iperf3 finds the program; `make test` fetches it.
func iperf3(t *testing.T) string {
	path, err := exec.LookPath("iperf3")
	switch {
	case err == nil:
	case os.Getenv("CI") == "true" || os.Getenv("XSKFWD_REQUIRE_PRIVILEGED") == "1":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
	return path
}

// transfer sends from a to b, or with -R from b to a, and looks at what the
// receiver says.
func (r *rig) transfer(iperf, host string, direction ...string) {
	r.t.Helper()
	const least = 4 << 20 // of 8 MiB: iperf3 stops counting when the sender has done
	server := labtest.StartProcess(r.t, r.b, netlab.Command{Path: iperf, Args: []string{"-s", "-1", "-B", host, "--forceflush"}})
	if err := server.WaitLog(labtest.Context(r.t), "listening"); err != nil {
		r.t.Fatal(err)
	}
	args := append([]string{"-c", host, "-n", "8M", "-J"}, direction...)
	client := labtest.StartProcess(r.t, r.a, netlab.Command{Path: iperf, Args: args})
	if err := client.Wait(labtest.Context(r.t)); err != nil {
		r.t.Fatalf("%v\n%s\n%s", err, client.Log(), r.daemon.Log())
	}
	var said struct {
		End struct {
			Received struct{ Bytes float64 } `json:"sum_received"`
		}
	}
	if err := json.Unmarshal([]byte(client.Log()), &said); err != nil {
		r.t.Fatal(err)
	}
	if said.End.Received.Bytes < least {
		r.t.Errorf("the receiver has %.0f bytes, want %d at least\n%s", said.End.Received.Bytes, least, client.Log())
	}
}
