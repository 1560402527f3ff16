// SPDX-License-Identifier: Apache-2.0

package netlab_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/xskfwd/xskfwd/internal/ethtool"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// pair is two namespaces joined by a0-b0.
func pair(t *testing.T, opts netlab.VethOptions) (a, b *netlab.NS) {
	t.Helper()
	labtest.Privileged(t)
	a, b = labtest.NS(t), labtest.NS(t)
	labtest.Veth(t, a, "a0", b, "b0", opts)
	return a, b
}

func link(t *testing.T, ns *netlab.NS, ifname string) *netlink.LinkAttrs {
	t.Helper()
	attrs, err := ns.Link(ifname)
	if err != nil {
		t.Fatal(err)
	}
	return attrs
}

func features(t *testing.T, ns *netlab.NS, ifname string) ethtool.Features {
	t.Helper()
	var f ethtool.Features
	err := ns.Do(func() (err error) {
		f, err = ethtool.GetFeatures(ifname)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestIntegrationVethHasWhatWasAskedAtEachEnd(t *testing.T) {
	macA, _ := net.ParseMAC("02:00:00:00:00:0a")
	macB, _ := net.ParseMAC("02:00:00:00:00:0b")
	a, b := pair(t, netlab.VethOptions{
		Queues: 2, MTU: 3000,
		A: netlab.End{MAC: macA, GRO: true},
		B: netlab.End{MAC: macB, RxQueues: 1, TxQueues: 4},
	})
	rows := []struct {
		ns     *netlab.NS
		ifname string
		mac    net.HardwareAddr
		rx, tx int
		gro    bool
	}{
		{a, "a0", macA, 2, 2, true},
		{b, "b0", macB, 1, 4, false},
	}
	for _, r := range rows {
		attrs := link(t, r.ns, r.ifname)
		if attrs.HardwareAddr.String() != r.mac.String() || attrs.MTU != 3000 {
			t.Errorf("%s: MAC %v MTU %d, want %v and 3000", r.ifname, attrs.HardwareAddr, attrs.MTU, r.mac)
		}
		if attrs.NumRxQueues != r.rx || attrs.NumTxQueues != r.tx {
			t.Errorf("%s: queues rx %d tx %d, want %d and %d", r.ifname, attrs.NumRxQueues, attrs.NumTxQueues, r.rx, r.tx)
		}
		if attrs.OperState != netlink.OperUp {
			t.Errorf("%s: state %v, want up", r.ifname, attrs.OperState)
		}
		if got := features(t, r.ns, r.ifname)[ethtool.GRO].Active; got != r.gro {
			t.Errorf("%s: GRO %v, want %v", r.ifname, got, r.gro)
		}
	}
}

func TestIntegrationVethIsABareWireUnlessAsked(t *testing.T) {
	a, _ := pair(t, netlab.VethOptions{})
	for name, f := range features(t, a, "a0") {
		offload := strings.Contains(name, "checksum") || strings.Contains(name, "segmentation") || strings.HasPrefix(name, "tx-scatter")
		if offload && f.Active && f.Changeable {
			t.Errorf("feature %s is on", name)
		}
	}
	must(t, a.Do(func() error {
		l, err := netlink.LinkByName("a0")
		must(t, err)
		addrs, err := netlink.AddrList(l, netlink.FAMILY_V6)
		if len(addrs) > 0 {
			t.Errorf("IPv6 addresses %v on a wire that should have none", addrs)
		}
		return err
	}))
}

func TestIntegrationVethKeepsOffloadsAndIPv6WhenAsked(t *testing.T) {
	a, _ := pair(t, netlab.VethOptions{Offloads: true, IPv6: true})
	if f := features(t, a, "a0"); !f[ethtool.TxChecksum].Active || !f[ethtool.TSO].Active {
		t.Errorf("offloads: checksum %+v, TSO %+v, want both active", f[ethtool.TxChecksum], f[ethtool.TSO])
	}
	must(t, a.Do(func() error {
		l, err := netlink.LinkByName("a0")
		must(t, err)
		addrs, err := netlink.AddrList(l, netlink.FAMILY_V6)
		if len(addrs) == 0 {
			t.Error("no IPv6 link-local address")
		}
		return err
	}))
}

// The kernel itself must be able to speak over the pair at once.
func TestIntegrationVethCarriesTrafficOfAddressesNeighboursAndRoutes(t *testing.T) {
	a, b := pair(t, netlab.VethOptions{})
	must(t, a.AddAddr("a0", netip.MustParsePrefix("10.9.1.1/24")))
	must(t, b.AddAddr("b0", netip.MustParsePrefix("10.9.1.2/24")))
	must(t, b.AddAddr("lo", netip.MustParsePrefix("10.9.2.2/32")))
	must(t, a.AddRoute(netip.MustParsePrefix("10.9.2.0/24"), netip.MustParseAddr("10.9.1.2")))
	must(t, a.AddNeigh("a0", netip.MustParseAddr("10.9.1.2"), link(t, b, "b0").HardwareAddr))

	var server net.PacketConn
	var client net.Conn
	must(t, b.Do(func() (err error) { server, err = net.ListenPacket("udp", "10.9.2.2:7"); return err }))
	defer server.Close()
	must(t, a.Do(func() (err error) { client, err = net.Dial("udp", "10.9.2.2:7"); return err }))
	defer client.Close()
	if _, err := client.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	limit, _ := labtest.Context(t).Deadline()
	must(t, server.SetReadDeadline(limit))
	buf := make([]byte, 16)
	n, _, err := server.ReadFrom(buf)
	if err != nil || string(buf[:n]) != "hello" {
		t.Errorf("received %q, %v", buf[:n], err)
	}
}

func TestIntegrationLinkLifeCycle(t *testing.T) {
	a, b := pair(t, netlab.VethOptions{})
	must(t, a.SetMTU("a0", 1400))
	if got := link(t, a, "a0").MTU; got != 1400 {
		t.Errorf("MTU %d, want 1400", got)
	}
	must(t, a.SetDown("a0"))
	labtest.WaitFor(t, "the peer to lose its carrier", func() bool {
		return link(t, b, "b0").OperState != netlink.OperUp
	})
	must(t, a.Rename("a0", "a1"))
	must(t, a.SetUp("a1"))
	must(t, b.WaitUp(labtest.Context(t), "b0"))
	must(t, a.Move("a1", b))
	if _, err := a.Link("a1"); err == nil {
		t.Error("a1 is still in its old namespace")
	}
	must(t, b.AddBridge("br0", "a1", "b0"))
	if got, want := link(t, b, "a1").MasterIndex, link(t, b, "br0").Index; got != want {
		t.Errorf("a1 has master %d, want %d", got, want)
	}
	must(t, b.Delete("a1"))
	if _, err := b.Link("b0"); err == nil {
		t.Error("b0 outlived its peer")
	}
}

func TestIntegrationLinkErrorsNameDeviceAndAttempt(t *testing.T) {
	labtest.Privileged(t)
	err := labtest.NS(t).SetMTU("nope", 1400)
	if err == nil || !strings.Contains(err.Error(), "device nope: set MTU 1400: ") {
		t.Errorf("got %v", err)
	}
}

func TestIntegrationWaitUpEndsWithItsContext(t *testing.T) {
	a, _ := pair(t, netlab.VethOptions{})
	must(t, a.SetDown("a0"))
	ctx, cancel := contextEnding(time.Millisecond)
	defer cancel()
	if err := a.WaitUp(ctx, "a0"); err == nil {
		t.Error("a device that is down was found up")
	}
}
