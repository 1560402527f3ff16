// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/netlab"
)

// Hosts that know nothing of each other find each other through the wire: ARP
// and neighbour discovery pass, then datagrams both ways, then ICMP errors.
func TestIntegrationHostsFindEachOther(t *testing.T) {
	r := newHosts(t)
	r.start()
	for i := range hostsA {
		t.Run([]string{"ipv4", "ipv6"}[i], func(t *testing.T) {
			r.t = t
			server := r.listen(r.b, hostsB[i])
			client := r.dial(r.a, server.LocalAddr())
			r.echo(client, server)
			r.knows(r.a, "a0", hostsB[i], macB)
			r.knows(r.b, "b0", hostsA[i], macA)

			if err := server.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Write([]byte("anybody?")); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNREFUSED) {
				t.Errorf("after the server has gone: %v, want the ICMP error %v", err, unix.ECONNREFUSED)
			}
		})
	}
	r.t = t
	r.stop()
}

// echo sends a datagram and waits for it to come back.
func (r *rig) echo(client, server *net.UDPConn) {
	r.t.Helper()
	buf := make([]byte, 64)
	if _, err := client.Write([]byte("hello")); err != nil {
		r.t.Fatal(err)
	}
	n, from, err := server.ReadFromUDP(buf)
	if err != nil {
		r.t.Fatalf("at the server: %v\n%s", err, r.daemon.Log())
	}
	if _, err := server.WriteToUDP(buf[:n], from); err != nil {
		r.t.Fatal(err)
	}
	if n, err = client.Read(buf); err != nil || string(buf[:n]) != "hello" {
		r.t.Fatalf("at the client: %q, %v\n%s", buf[:n], err, r.daemon.Log())
	}
}

// knows fails unless a host has resolved an address to this MAC.
func (r *rig) knows(ns *netlab.NS, ifname, host string, mac net.HardwareAddr) {
	r.t.Helper()
	link, err := ns.Link(ifname)
	if err != nil {
		r.t.Fatal(err)
	}
	var neighbours []netlink.Neigh
	err = ns.Do(func() (err error) { neighbours, err = netlink.NeighList(link.Index, 0); return err })
	for _, n := range neighbours {
		if a, _ := netip.AddrFromSlice(n.IP); a.Unmap().String() == host && n.HardwareAddr.String() == mac.String() {
			return
		}
	}
	r.t.Errorf("%s has no neighbour %s at %s: %v, %v", ifname, host, mac, neighbours, err)
}
