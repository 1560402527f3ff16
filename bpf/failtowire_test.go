// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/asavie/xdp"
	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/xskfwd/xskfwd/internal/ethtool"
)

// victimEnv makes the test binary a daemon on r0 and r1 that takes all frames
// and forwards none, until it is killed. Its value is the pin root.
const victimEnv = "XSKFWD_BPF_TEST_VICTIM"

func beVictim(root string) {
	err := serve(root)
	fmt.Println(err)
	io.Copy(io.Discard, os.Stdin)
}

func serve(root string) error {
	r0, err := netlink.LinkByName("r0")
	if err != nil {
		return err
	}
	r1, err := netlink.LinkByName("r1")
	if err != nil {
		return err
	}
	if err := serveOn(root, r0, r1); err != nil {
		return err
	}
	return serveOn(root, r1, r0)
}

func serveOn(root string, dev, partner netlink.Link) error {
	o := Options{Ifindex: dev.Attrs().Index, Ifname: dev.Attrs().Name, Queues: 1, Partner: partner.Attrs().Index}
	var err error
	if o.PinDir, err = PortDir(root, o.Ifname); err != nil {
		return err
	}
	p, err := Load(o)
	if err != nil {
		return err
	}
	socket, err := xdp.NewSocket(o.Ifindex, 0, nil)
	if err != nil {
		return err
	}
	if err := p.Register(0, socket.FD()); err != nil {
		return err
	}
	return p.Attach()
}

// wire is r0-r1 in the middle, a0 and b0 at the ends. The ends get a program
// that passes all, because a veth end takes redirected frames only when its
// NAPI runs.
func (l *lab) wire() (o0, o1 Options, a, b *tap) {
	l.t.Helper()
	r0, a0 := l.veth("r0", "a0", 1)
	r1, b0 := l.veth("r1", "b0", 1)
	passAll := l.foreign("pass_all", ebpf.AttachXDP)
	l.attachLink(passAll, a0, Native)
	l.attachLink(passAll, b0, Native)
	o0 = Options{Ifindex: r0, Ifname: "r0", Queues: 1, Partner: r1, PinDir: l.pinDir("r0")}
	o1 = Options{Ifindex: r1, Ifname: "r1", Queues: 1, Partner: r0, PinDir: l.pinDir("r1")}
	return o0, o1, l.tap(a0), l.tap(b0)
}

// victim starts the daemon and waits until its programs are attached.
func (l *lab) victim() *exec.Cmd {
	l.t.Helper()
	daemon := exec.Command(os.Args[0])
	daemon.Env = append(os.Environ(), victimEnv+"="+l.root())
	_, err := daemon.StdinPipe()
	l.must(err)
	out, err := daemon.StdoutPipe()
	l.must(err)
	l.must(daemon.Start())
	l.cleanup(func() { daemon.Process.Kill(); daemon.Wait() })
	said, err := bufio.NewReader(out).ReadString('\n')
	l.must(err)
	if said != "<nil>\n" {
		l.fatal("the daemon says: %s", said)
	}
	return daemon
}

func TestIntegrationKilledDaemonLeavesAWireWhichTheNextOneTakesBack(t *testing.T) {
	inLab(t, func(l *lab) {
		const frames = 1000
		o0, o1, a, b := l.wire()
		daemon := l.victim()

		if _, err := Load(o0); err == nil {
			t.Error("a port that a living daemon holds was given to a second one")
		}
		if removed, err := DetachAll(l.root()); err == nil || len(removed) != 0 {
			t.Errorf("DetachAll under a living daemon: removed %v, error %v, want nothing and ErrInUse", removed, err)
		}
		a.send(7) // taken by the socket, which does nothing with it
		before := l.attached(o0.Ifindex)

		l.must(daemon.Process.Kill())
		daemon.Wait()
		l.carry(a, b, frames)
		l.carry(b, a, frames)

		p0, p1 := l.load(o0), l.load(o1)
		if !p0.Adopted() || !p1.Adopted() || p0.Mode() != Native {
			t.Errorf("adopted %v and %v, mode %s, want both, native", p0.Adopted(), p1.Adopted(), p0.Mode())
		}
		if got, want := l.counters(p0), (Counters{Redirected: 1, Partner: frames, Orphaned: frames}); got != want {
			t.Errorf("counters of r0 %+v, want %+v", got, want)
		}
		l.must(p0.Register(0, l.socket()))
		l.must(p0.Attach())
		l.must(p1.Attach())
		if after := l.attached(o0.Ifindex); after != before {
			t.Errorf("adopting changed the attachment: %s, was %s", after, before)
		}
		if got := l.verdict(p0, 0, 60); got != xdpRedirect || l.counters(p0).Redirected != 2 {
			t.Errorf("verdict %d, counters %+v: the new socket takes no frames", got, l.counters(p0))
		}
		l.must(p0.Detach())
		l.must(p1.Detach())
		l.nothingLeft(o0.Ifindex)
		l.nothingLeft(o1.Ifindex)
	})
}

func TestIntegrationClosedPortForwardsUntilDetachAll(t *testing.T) {
	for _, mode := range []Mode{Native, Generic} {
		t.Run(string(mode), func(t *testing.T) {
			inLab(t, func(l *lab) {
				o0, o1, a, b := l.wire()
				o0.Mode, o1.Mode = mode, mode
				l.must(l.attach(o0).Close())
				l.must(l.attach(o1).Close())
				l.carry(a, b, 1000)
				l.carry(b, a, 1000)
				removed, err := DetachAll(l.root())
				l.must(err)
				if len(removed) != 2*len(pinNames()) || !slices.Contains(removed, filepath.Join(o0.PinDir, version(1), linkPin)) {
					t.Errorf("removed %v, want the %d pins of two ports", removed, len(pinNames()))
				}
				l.nothingLeft(o0.Ifindex)
				l.nothingLeft(o1.Ifindex)
				if _, err := os.Stat(l.root()); !os.IsNotExist(err) {
					t.Errorf("the root is still there: %v", err)
				}
				again, err := DetachAll(l.root())
				if len(again) != 0 || err != nil {
					t.Errorf("second DetachAll: %v, %v, want nothing to do", again, err)
				}
			})
		})
	}
}

// A native program cannot redirect to a device without native XDP.
func TestIntegrationAutoIsGenericTowardsAPartnerWithoutNativeXDP(t *testing.T) {
	inLab(t, func(l *lab) {
		o, _, a, b := l.wire()
		br0 := l.bridge("br0") // floods to r1, whose other end is b
		l.must(netlink.LinkSetMasterByIndex(l.device("r1"), br0))
		o.Partner = br0
		p := l.attach(o)
		if p.Mode() != Generic || !p.NativeRefused() {
			t.Errorf("mode %s, native refused %v, want generic for a reason", p.Mode(), p.NativeRefused())
		}
		l.oneLine(p.Fallback(), "br0", "native")
		l.carry(a, b, 10)
	})
}

func (l *lab) setGRO(ifname string, on bool) {
	l.t.Helper()
	refused, err := ethtool.SetFeatures(ifname, map[string]bool{ethtool.GRO: on})
	l.must(err)
	if len(refused) > 0 {
		l.fatal("%s refuses %v", ifname, refused)
	}
}

// A veth end takes redirected frames only while its peer runs NAPI, and a
// program of ours on the end itself does not help.
func TestIntegrationPartnerThatTakesNoFramesIsWarnedOfUntilItDoes(t *testing.T) {
	inLab(t, func(l *lab) {
		r0, a0 := l.veth("r0", "a0", 1)
		r1, b0 := l.veth("r1", "b0", 1)
		l.setGRO("a0", true) // what is redirected to r0 arrives
		p0 := l.load(Options{Ifindex: r0, Ifname: "r0", Queues: 1, Mode: Native, Partner: r1})
		if got := p0.FailToWireWarning(); got != "" {
			t.Errorf("before the attach: %q, want nothing", got)
		}
		l.must(p0.Attach())
		p1 := l.attach(Options{Ifindex: r1, Ifname: "r1", Queues: 1, Mode: Native, Partner: r0})
		if got := p1.FailToWireWarning(); got != "" {
			t.Errorf("towards r0: %q, want nothing", got)
		}
		l.oneLine(p0.FailToWireWarning(), "to r1 would be lost", "pair, b0, runs no NAPI", "ethtool -K b0 gro on", "--xdp generic")

		l.tap(a0).send(1) // lost
		l.must(netlink.LinkSetDown(l.device("b0")))
		l.setGRO("b0", true)
		l.up("b0")
		if p0.FailToWireWarning() == "" {
			t.Log("this kernel sees GRO that was switched on while b0 was down")
		}
		l.setGRO("b0", false)
		l.setGRO("b0", true) // the cure
		if got := p0.FailToWireWarning(); got != "" {
			t.Errorf("with GRO on b0: %q, want nothing", got)
		}
		a, b := l.tap(a0), l.tap(b0)
		l.carry(a, b, 10)
		l.carry(b, a, 10)

		l.setGRO("b0", false)
		l.must(p0.SetPartner(0))
		if got := p0.FailToWireWarning(); got != "" {
			t.Errorf("without a partner: %q, want nothing", got)
		}
	})
}

func TestIntegrationFailToWireWarningFitsModeAndDriver(t *testing.T) {
	inLab(t, func(l *lab) {
		r0, _ := l.veth("r0", "a0", 1)
		r1, _ := l.veth("r1", "b0", 1)
		o := Options{Ifindex: r0, Ifname: "r0", Queues: 1, Mode: Generic, Partner: r1}
		p := l.attach(o)
		if got := p.FailToWireWarning(); got != "" {
			t.Errorf("generic: %q, want nothing, such a program redirects to any device", got)
		}
		l.must(p.Detach())

		o.Mode, o.Partner = Native, l.bridge("br0")
		p = l.attach(o)
		l.oneLine(p.FailToWireWarning(), "to br0 would be lost", "its driver (bridge) takes none", "--xdp generic")

		here, err := netns.Get()
		l.must(err)
		defer here.Close()
		there, err := netns.New()
		l.must(err)
		defer there.Close()
		l.must(netns.Set(here))
		l.must(netlink.LinkSetNsFd(l.device("b0"), int(there)))
		l.must(p.SetPartner(r1))
		l.oneLine(p.FailToWireWarning(), "to r1 would be lost", "another network namespace", "ethtool -K PEER gro on")
		l.must(p.Detach())
		if got := p.FailToWireWarning(); got != "" {
			t.Errorf("detached: %q, want nothing", got)
		}
	})
}
