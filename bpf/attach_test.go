// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestIntegrationAttachAndDetachLeaveNothing(t *testing.T) {
	for _, mode := range []Mode{Native, Generic, Auto} {
		t.Run(string(mode), func(t *testing.T) {
			inLab(t, func(l *lab) {
				r0, _ := l.veth("r0", "a0", 1)
				p := l.attach(Options{Ifindex: r0, Ifname: "r0", Queues: 1, Mode: mode, PinDir: l.pinDir("r0")})
				want := mode
				if mode == Auto {
					want = Native
				}
				if p.Mode() != want || l.attached(r0).mode != want || p.Fallback() != "" || p.NativeRefused() {
					t.Errorf("mode %s, the kernel says %s, fallback %q, want %s", p.Mode(), l.attached(r0).mode, p.Fallback(), want)
				}
				if files := l.files(l.root()); len(files) != 8 {
					t.Errorf("pins are %v, want two directories and six files", files)
				}
				l.must(p.Detach())
				l.nothingLeft(r0)
			})
		})
	}
}

func (l *lab) nothingLeft(ifindex int) {
	l.t.Helper()
	if on := l.attached(ifindex); on.present {
		l.t.Errorf("still attached: %s", on)
	}
	if files := l.files(l.bpffs); len(files) != 0 {
		l.t.Errorf("left behind: %s", strings.Join(files, " "))
	}
}

func TestIntegrationUnpinnedProgramLeavesWithItsPort(t *testing.T) {
	inLab(t, func(l *lab) {
		r0, _ := l.veth("r0", "a0", 1)
		p := l.attach(Options{Ifindex: r0, Ifname: "r0", Queues: 1})
		runtime.GC() // the link must not go with a collected Go object
		runtime.GC()
		if !l.attached(r0).present {
			t.Error("the program left while its port was held")
		}
		runtime.KeepAlive(p)
		l.must(p.Close())
		l.nothingLeft(r0)
	})
}

func TestIntegrationClosedPortAnswersWithAnError(t *testing.T) {
	inLab(t, func(l *lab) {
		r0, _ := l.veth("r0", "a0", 1)
		p := l.attach(Options{Ifindex: r0, Ifname: "r0", Queues: 1})
		l.must(p.Detach())
		_, err := p.Counters()
		for what, err := range map[string]error{
			"Counters": err, "Register": p.Register(0, 0), "Unregister": p.Unregister(0),
			"SetPartner": p.SetPartner(0), "Attach": p.Attach(),
		} {
			if !errors.Is(err, os.ErrClosed) {
				t.Errorf("%s of a detached port: %v, want os.ErrClosed", what, err)
			}
		}
		l.must(p.Detach())
		l.must(p.Close())
	})
}

func (l *lab) bridge(name string) int {
	l.t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	l.must(netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}))
	return l.up(name)
}

func TestIntegrationAutoFallsBackToGenericAndSaysWhy(t *testing.T) {
	inLab(t, func(l *lab) {
		br0 := l.bridge("br0")
		p := l.attach(Options{Ifindex: br0, Ifname: "br0", Queues: 1, Mode: Auto, PinDir: l.pinDir("br0")})
		if p.Mode() != Generic || l.attached(br0).mode != Generic || !p.NativeRefused() {
			t.Errorf("mode %s, the kernel says %s, native refused %v, want generic for a refusal", p.Mode(), l.attached(br0).mode, p.NativeRefused())
		}
		l.oneLine(p.Fallback(), "br0", "bridge", "native", "not supported", "does not support XDP in native mode")
		l.must(p.Detach())
		l.nothingLeft(br0)
	})
}

// oneLine requires all the words in one line.
func (l *lab) oneLine(text string, words ...string) {
	l.t.Helper()
	l.t.Logf("says: %s", text)
	if strings.Contains(text, "\n") {
		l.t.Errorf("more than one line: %q", text)
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			l.t.Errorf("%q does not say %q", text, word)
		}
	}
}

func TestIntegrationNativeFailsCleanlyWhereItIsRefused(t *testing.T) {
	inLab(t, func(l *lab) {
		br0 := l.bridge("br0")
		p := l.load(Options{Ifindex: br0, Ifname: "br0", Queues: 1, Mode: Native, PinDir: l.pinDir("br0")})
		err := p.Attach()
		if !errors.Is(err, unix.EOPNOTSUPP) {
			l.fatal("got %v, want EOPNOTSUPP", err)
		}
		l.oneLine(err.Error(), "port br0", "native", "use --xdp generic")
		l.must(p.Close())
		l.nothingLeft(br0)
	})
}

func TestIntegrationTooLargeMTUIsExplainedInOneLine(t *testing.T) {
	inLab(t, func(l *lab) {
		r0, _ := l.veth("r0", "a0", 1)
		l.must(netlink.LinkSetMTU(l.device("a0"), 9000))
		o := Options{Ifindex: r0, Ifname: "r0", Queues: 1, Mode: Native}
		err := l.load(o).Attach()
		if !errors.Is(err, unix.ERANGE) {
			l.fatal("got %v, want ERANGE", err)
		}
		words := []string{"r0", "mtu 1500", "Peer MTU is too large to set XDP", "a0", "9000", "3506", "ip link set dev a0 mtu 3506", "--xdp generic"}
		l.oneLine(err.Error(), words...)
		o.Mode = Auto
		p := l.attach(o)
		l.oneLine(p.Fallback(), words...)
		if p.Mode() != Generic {
			t.Errorf("mode %s, want generic", p.Mode())
		}
		l.must(p.Detach())

		// The remedy must be one.
		l.must(netlink.LinkSetMTU(l.device("a0"), 3506))
		o.Mode = Native
		l.must(l.attach(o).Detach())
		l.must(netlink.LinkSetMTU(l.device("a0"), 3507))
		if err := l.load(o).Attach(); err == nil {
			t.Error("an MTU of 3507 was accepted, so the limit is not 3506")
		}
		l.nothingLeft(r0)
	})
}

func TestIntegrationTooManyPeerQueuesAreExplained(t *testing.T) {
	inLab(t, func(l *lab) {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.NumRxQueues, attrs.NumTxQueues = "r0", 1, 1
		l.must(netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "a0", PeerNumTxQueues: 4, PeerNumRxQueues: 4}))
		r0 := l.up("r0")
		err := l.load(Options{Ifindex: r0, Ifname: "r0", Queues: 1, Mode: Native}).Attach()
		if err == nil {
			l.fatal("native mode was accepted with 4 tx queues at the peer and 1 rx queue")
		}
		l.oneLine(err.Error(), "r0", "kernel:", "queues", "ethtool -L")
	})
}

// foreign is somebody else's program: it passes all.
func (l *lab) foreign(name string, expect ebpf.AttachType) *ebpf.Program {
	l.t.Helper()
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name:         name,
		Type:         ebpf.XDP,
		AttachType:   expect,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, xdpPass), asm.Return()},
	})
	l.must(err)
	l.cleanup(func() { program.Close() })
	return program
}

func (l *lab) attachLink(program *ebpf.Program, ifindex int, mode Mode) link.Link {
	l.t.Helper()
	flags := map[Mode]link.XDPAttachFlags{Native: link.XDPDriverMode, Generic: link.XDPGenericMode}
	held, err := link.AttachXDP(link.XDPOptions{Program: program, Interface: ifindex, Flags: flags[mode]})
	l.must(err)
	l.cleanup(func() { held.Close() })
	return held
}

func TestIntegrationForeignProgramIsNamedAndLeftAloneOrReplaced(t *testing.T) {
	byNetlink := func(l *lab, program *ebpf.Program, ifindex int, mode Mode) {
		l.must(setXDP(ifindex, program.FD(), mode))
	}
	byLink := func(l *lab, program *ebpf.Program, ifindex int, mode Mode) {
		l.attachLink(program, ifindex, mode)
	}
	rows := []struct {
		name   string
		mode   Mode
		attach func(*lab, *ebpf.Program, int, Mode)
	}{
		{"netlink-native", Native, byNetlink},
		{"netlink-generic", Generic, byNetlink},
		{"link-native", Native, byLink},
		{"link-generic", Generic, byLink},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				r0, _ := l.veth("r0", "a0", 1)
				program := l.foreign("somebody", ebpf.AttachXDP)
				row.attach(l, program, r0, row.mode)
				before := l.attached(r0)
				for _, mode := range []Mode{Auto, Native, Generic} {
					p := l.load(Options{Ifindex: r0, Ifname: "r0", Queues: 1, Mode: mode, PinDir: l.pinDir("r0")})
					err := p.Attach()
					if !errors.Is(err, ErrOccupied) {
						l.fatal("mode %s: got %v, want ErrOccupied", mode, err)
					}
					l.oneLine(err.Error(), "r0", fmt.Sprintf("program %d", before.program), `"somebody"`, string(row.mode))
					l.must(p.Detach())
					if after := l.attached(r0); after != before {
						t.Fatalf("mode %s: the program was touched: %s, was %s", mode, after, before)
					}
				}
				p := l.attach(Options{Ifindex: r0, Ifname: "r0", Queues: 1, Mode: Native, Replace: true})
				if got := l.attached(r0); got.program == before.program || got.mode != Native {
					t.Errorf("not replaced: %s", got)
				}
				l.must(p.Detach())
				l.nothingLeft(r0)
			})
		})
	}
}

// Two containers often have the same program on the same interface index.
func TestIntegrationReplaceRefusesToGuessWhichLinkIsMeant(t *testing.T) {
	inLab(t, func(l *lab) {
		program := l.foreign("somebody", ebpf.AttachXDP)
		r0, _ := l.veth("r0", "a0", 1)
		l.attachLink(program, r0, Native)
		l.elsewhere(func() {
			twin, _ := l.veth("r0", "a0", 1)
			if twin != r0 {
				l.fatal("interface indices are %d and %d, want the same in both namespaces", r0, twin)
			}
			l.attachLink(program, twin, Native)
		})
		p := l.load(Options{Ifindex: r0, Ifname: "r0", Queues: 1, Replace: true})
		if err := p.Attach(); err == nil || !strings.Contains(err.Error(), "2 links fit") {
			t.Errorf("got %v, want an error about 2 links", err)
		}
		l.must(p.Detach())
		if !l.attached(r0).present {
			t.Error("the program was removed all the same")
		}
	})
}

func TestOptionsAreRefusedBeforeAnythingIsLoaded(t *testing.T) {
	good := Options{Ifindex: 7, Ifname: "r0", Queues: 2, Mode: Native, Partner: 8}
	rows := []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"no interface", func(o *Options) { o.Ifindex = 0 }, "interface index 0"},
		{"no queues", func(o *Options) { o.Queues = 0 }, "0 receive queues"},
		{"own partner", func(o *Options) { o.Partner = 7 }, "partner interface index 7"},
		{"negative partner", func(o *Options) { o.Partner = -1 }, "partner interface index -1"},
		{"odd mode", func(o *Options) { o.Mode = "offload" }, `"offload", want auto, native or generic`},
	}
	if err := good.validate(); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		o := good
		row.change(&o)
		if _, err := Load(o); err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), "r0") {
			t.Errorf("%s: got %v, want an error about r0 with %q", row.name, err, row.want)
		}
	}
}
