// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// The hosts at the ends of a wire, which are in one subnet of each family.
var (
	hostsA = []string{"10.77.1.1", "fd00:77::1"}
	hostsB = []string{"10.77.1.2", "fd00:77::2"}
)

// newHosts is a rig whose ends have addresses and no neighbour entries. Their
// offloads are off, as on any host whose frames are to be right on the wire.
func newHosts(t *testing.T) *rig {
	r := newRig(t, netlab.VethOptions{IPv6: true})
	for _, end := range []struct {
		ns     *netlab.NS
		ifname string
		hosts  []string
	}{{r.a, "a0", hostsA}, {r.b, "b0", hostsB}} {
		for i, host := range end.hosts {
			bits := []int{24, 64}[i]
			if err := end.ns.AddAddr(end.ifname, netip.PrefixFrom(netip.MustParseAddr(host), bits)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return r
}

// listen opens a socket for datagrams at an address of a host.
func (r *rig) listen(ns *netlab.NS, host string) *net.UDPConn {
	r.t.Helper()
	var conn *net.UDPConn
	err := ns.Do(func() (err error) {
		conn, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(host)})
		return err
	})
	return r.bounded(conn, err)
}

// dial opens a socket for datagrams to an address of another host.
func (r *rig) dial(ns *netlab.NS, to net.Addr) *net.UDPConn {
	r.t.Helper()
	var conn *net.UDPConn
	err := ns.Do(func() (err error) {
		conn, err = net.DialUDP("udp", nil, to.(*net.UDPAddr))
		return err
	})
	return r.bounded(conn, err)
}

// bounded makes a socket close with the test, and give up when waits do.
func (r *rig) bounded(conn *net.UDPConn, err error) *net.UDPConn {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	limit, _ := labtest.Context(r.t).Deadline()
	if err := conn.SetDeadline(limit.Add(-time.Second)); err != nil {
		r.t.Fatal(err)
	}
	return conn
}
