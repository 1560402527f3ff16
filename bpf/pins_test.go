// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// linkID tells one attachment from the next.
func (l *lab) linkID(p *Port) link.ID {
	l.t.Helper()
	info, err := p.link.Info()
	l.must(err)
	return info.ID
}

func TestIntegrationPinsOfTheSameVersionAreAdopted(t *testing.T) {
	inLab(t, func(l *lab) {
		r0, _ := l.veth("r0.1", "a0", 1) // bpffs takes no dot in a name
		r1, _ := l.veth("r1", "b0", 1)
		o := Options{Ifindex: r0, Ifname: "r0.1", Queues: 1, PinDir: l.pinDir("r0.1")}
		first := l.attach(o)
		l.must(first.Register(0, l.socket()))
		l.verdict(first, 0, 60)
		id, before := l.linkID(first), l.attached(r0)
		l.must(first.Close())

		o.Partner = r1
		second := l.load(o)
		if !second.Adopted() || second.Mode() != Native || l.linkID(second) != id {
			t.Errorf("adopted %v, mode %s, link %d, want the native link %d", second.Adopted(), second.Mode(), l.linkID(second), id)
		}
		l.verdict(second, 0, 60) // although the former socket still exists
		if got, want := l.counters(second), (Counters{Redirected: 1, Partner: 1}); got != want {
			t.Errorf("counters %+v, want %+v: they go on, and the partner is the new one", got, want)
		}
		l.must(second.Attach())
		l.must(second.Attach()) // once more changes nothing
		if after := l.attached(r0); after != before {
			t.Errorf("attached %s, was %s", after, before)
		}
		l.must(second.Detach())
		l.nothingLeft(r0)
	})
}

// Anybody may hold the link as well (bpftool does), and the kernel keeps what is held.
func TestIntegrationDetachTakesEffectWhileOthersHoldTheLink(t *testing.T) {
	inLab(t, func(l *lab) {
		r0, _ := l.veth("r0", "a0", 1)
		p := l.attach(Options{Ifindex: r0, Ifname: "r0", Queues: 1, PinDir: l.pinDir("r0")})
		held, err := link.LoadPinnedLink(filepath.Join(p.versionDir(), linkPin), nil)
		l.must(err)
		l.cleanup(func() { held.Close() })
		l.must(p.Detach())
		l.nothingLeft(r0)

		p = l.attach(Options{Ifindex: r0, Ifname: "r0", Queues: 1, PinDir: l.pinDir("r0")})
		again, err := link.LoadPinnedLink(filepath.Join(p.versionDir(), linkPin), nil)
		l.must(err)
		l.cleanup(func() { again.Close() })
		l.must(p.Close())
		_, err = DetachAll(l.root())
		l.must(err)
		l.nothingLeft(r0)
	})
}

func TestIntegrationLoadAloneChangesNothing(t *testing.T) {
	inLab(t, func(l *lab) {
		r0, _ := l.veth("r0", "a0", 1)
		o := Options{Ifindex: r0, Ifname: "r0", Queues: 1, PinDir: l.pinDir("r0")}
		l.must(l.load(o).Close())
		l.nothingLeft(r0)
		l.must(l.attach(o).Close())
		before, files := l.attached(r0), l.files(l.root())
		o.Queues = 2
		l.must(l.load(o).Close())
		if after := l.attached(r0); after != before || !slices.Equal(files, l.files(l.root())) {
			t.Errorf("attached %s, was %s; pins %v, were %v", after, before, l.files(l.root()), files)
		}
	})
}

func TestIntegrationPinsOfAnotherVersionAreReplacedInPlace(t *testing.T) {
	inLab(t, func(l *lab) {
		r0, _ := l.veth("r0", "a0", 2)
		o := Options{Ifindex: r0, Ifname: "r0", Queues: 1, PinDir: l.pinDir("r0")}
		first := l.attach(o)
		id, old := l.linkID(first), first.versionDir()
		l.must(first.Close())

		o.Queues = 2
		second := l.load(o)
		if second.Adopted() {
			t.Error("maps for one queue were adopted for two")
		}
		l.must(second.Register(1, l.socket()))
		l.must(second.Attach())
		if got := l.linkID(second); got != id {
			t.Errorf("link %d, was %d: there was a gap", got, id)
		}
		if l.verdict(second, 1, 60) != xdpRedirect {
			t.Error("the new program does not redirect")
		}
		if files := l.files(old); len(files) != 0 {
			t.Errorf("pins of the former version are left: %v", files)
		}
		l.must(second.Close())
		if !l.load(o).Adopted() {
			t.Error("the replaced pins cannot be adopted")
		}
	})
}

// pinByHand leaves the pins of a former version, with a link to any program.
func (l *lab) pinByHand(o Options, program *ebpf.Program, mode Mode) (dir string) {
	l.t.Helper()
	dir = filepath.Join(o.PinDir, "0123456789abcdef-q1")
	l.must(os.MkdirAll(dir, 0o700))
	held := l.attachLink(program, o.Ifindex, mode)
	l.must(held.Pin(filepath.Join(dir, linkPin)))
	l.must(held.Close())
	return dir
}

// Old loaders set no expected attach type, and 6.18 refuses to update across.
func TestIntegrationLinkThatCannotBeUpdatedIsMadeAnew(t *testing.T) {
	inLab(t, func(l *lab) {
		r0, _ := l.veth("r0", "a0", 1)
		o := Options{Ifindex: r0, Ifname: "r0", Queues: 1, PinDir: l.pinDir("r0")}
		old := l.foreign(redirectProgXskfwdRedirect, ebpf.AttachNone)
		l.pinByHand(o, old, Native)

		p := l.load(o)
		if err := p.link.Update(p.objects.XskfwdRedirect); !errors.Is(err, unix.EINVAL) {
			t.Logf("this kernel answers the update with %v, not EINVAL", err)
		}
		l.must(p.Attach())
		if l.verdict(p, 0, 60) != xdpPass || l.counters(p).Passed != 1 {
			t.Error("the program does not run")
		}
		l.must(p.Detach())
		l.nothingLeft(r0)
	})
}

func TestIntegrationPinsInTheWrongModeAreReplaced(t *testing.T) {
	inLab(t, func(l *lab) {
		r0, _ := l.veth("r0", "a0", 1)
		o := Options{Ifindex: r0, Ifname: "r0", Queues: 1, Mode: Generic, PinDir: l.pinDir("r0")}
		l.must(l.attach(o).Close())

		o.Mode = Auto
		p := l.load(o)
		if !p.Adopted() || p.NativeRefused() {
			t.Errorf("adopted %v, native refused %v, want it adopted and native not tried", p.Adopted(), p.NativeRefused())
		}
		l.oneLine(p.Fallback(), "generic", "adopted", "run xskfwd detach and start again")
		l.must(p.Close())

		o.Mode = Native
		p = l.attach(o)
		if p.Adopted() || p.Mode() != Native || l.attached(r0).mode != Native {
			t.Errorf("adopted %v, mode %s, the kernel says %s, want native anew", p.Adopted(), p.Mode(), l.attached(r0))
		}
		l.must(p.Detach())
		l.nothingLeft(r0)
	})
}

func TestIntegrationPinsOfADeletedDeviceAreCleaned(t *testing.T) {
	inLab(t, func(l *lab) {
		r0, _ := l.veth("r0", "a0", 1)
		o := Options{Ifindex: r0, Ifname: "r0", Queues: 1, PinDir: l.pinDir("r0")}
		l.must(l.attach(o).Close())
		l.remove("r0")
		o.Ifindex, _ = l.veth("r0", "a0", 1) // the name comes back, another device

		p := l.attach(o)
		if p.Adopted() {
			t.Error("pins of a deleted device were adopted")
		}
		l.must(p.Close())
		l.remove("r0")
		if _, err := DetachAll(l.root()); err != nil {
			t.Errorf("DetachAll with the device gone: %v", err)
		}
		if files := l.files(l.root()); len(files) != 0 {
			t.Errorf("left: %v", files)
		}
	})
}

func TestIntegrationPinsOfARenamedDeviceAreNotTakenFromIt(t *testing.T) {
	inLab(t, func(l *lab) {
		old, _ := l.veth("r0", "a0", 1)
		o := Options{Ifindex: old, Ifname: "r0", Queues: 1, PinDir: l.pinDir("r0")}
		l.must(l.attach(o).Close())
		l.must(netlink.LinkSetDown(l.device("r0")))
		l.must(netlink.LinkSetName(l.device("r0"), "was-r0"))
		o.Ifindex, _ = l.veth("r0", "a1", 1)
		if _, err := Load(o); err == nil || !strings.Contains(err.Error(), "had this name before") {
			t.Errorf("got %v, want an error about the renamed device", err)
		}
		if !l.attached(old).present {
			t.Error("the renamed device lost its program")
		}
		o.Replace = true
		l.must(l.attach(o).Detach())
	})
}

func TestIntegrationPortIsHeldByOneProcessAtATime(t *testing.T) {
	inLab(t, func(l *lab) {
		r0, _ := l.veth("r0", "a0", 1)
		o := Options{Ifindex: r0, Ifname: "r0", Queues: 1, PinDir: l.pinDir("r0")}
		p := l.attach(o)
		before := l.attached(r0)
		if _, err := Load(o); !errors.Is(err, ErrInUse) {
			t.Errorf("second Load: %v, want ErrInUse", err)
		}
		if removed, err := DetachAll(l.root()); !errors.Is(err, ErrInUse) || len(removed) != 0 {
			t.Errorf("DetachAll: removed %v, %v, want nothing and ErrInUse", removed, err)
		}
		if after := l.attached(r0); after != before || len(l.files(p.versionDir())) != len(pinNames()) {
			t.Errorf("the first was touched: %s, was %s", after, before)
		}
		l.must(p.Detach())
		l.must(l.load(o).Close())
	})
}

// Each row is a state a crash or a stranger's hand can leave behind, on top of
// a port that was attached and closed. Load and Attach must cope, and Detach
// must leave nothing but what is not ours.
func TestIntegrationDamagedPinsAreReplacedOrNamed(t *testing.T) {
	const old = "ffffffffffffffff-q4" // sorts after every other
	pinMap := func(l *lab, path string) {
		m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
		l.must(err)
		l.must(m.Pin(path))
		l.must(m.Close())
	}
	remove := func(names ...string) func(*lab, string, string) {
		return func(l *lab, _, version string) {
			for _, name := range names {
				l.must(os.Remove(filepath.Join(version, name)))
			}
		}
	}
	rows := []struct {
		name    string
		damage  func(l *lab, port, version string)
		adopted bool
		refused string   // Load says
		stays   []string // below the port directory
	}{
		{"nothing wrong", func(*lab, string, string) {}, true, "", nil},
		{"crash before the link was pinned", remove(linkPin), false, "", nil},
		{"crash after the first pin", remove(linkPin, redirectMapCountersMap, redirectMapPartnerMap, redirectMapQidconfMap, redirectMapXsksMap), false, "", nil},
		{"crash before the first pin", remove(pinNames()...), false, "", nil},
		{"program missing", remove(progPin), false, "", nil},
		{"one map missing", remove(redirectMapPartnerMap), false, "", nil},
		{"another map in place of one", func(l *lab, _, version string) {
			remove(redirectMapCountersMap)(l, "", version)
			pinMap(l, filepath.Join(version, redirectMapCountersMap))
		}, false, "", nil},
		{"a map of the right shape that the program does not use", func(l *lab, _, version string) {
			remove(redirectMapXsksMap)(l, "", version)
			objects, err := loadObjects(1)
			l.must(err)
			l.must(objects.XsksMap.Pin(filepath.Join(version, redirectMapXsksMap)))
			l.must(objects.Close())
		}, false, "", nil},
		{"a complete set that is not what runs", func(l *lab, _, version string) {
			objects, err := loadObjects(1)
			l.must(err)
			l.must(pinOver(objects.XskfwdRedirect, filepath.Join(version, progPin)))
			for name, slot := range objects.slots() {
				l.must(pinOver(*slot, filepath.Join(version, name)))
			}
			l.must(objects.Close())
		}, false, "", nil},
		{"pins of another object", func(l *lab, port, version string) {
			l.must(os.Rename(version, filepath.Join(port, "fedcba9876543210-q1")))
		}, false, "", nil},
		{"another program in place of ours", func(l *lab, _, version string) {
			remove(progPin)(l, "", version)
			l.must(l.foreign("somebody", ebpf.AttachXDP).Pin(filepath.Join(version, progPin)))
		}, false, "", nil},
		{"a map in place of the link", func(l *lab, _, version string) {
			remove(linkPin)(l, "", version)
			pinMap(l, filepath.Join(version, linkPin))
		}, false, "", nil},
		{"crash in the middle of a replacement", func(l *lab, port, version string) {
			l.must(os.Mkdir(filepath.Join(port, old), 0o700))
			pinMap(l, filepath.Join(port, old, redirectMapXsksMap))
		}, true, "", nil},
		{"link still with the former version", func(l *lab, port, version string) {
			l.must(os.Mkdir(filepath.Join(port, old), 0o700))
			l.must(os.Rename(filepath.Join(version, linkPin), filepath.Join(port, old, linkPin)))
		}, false, "", nil},
		{"the link pinned twice", func(l *lab, port, version string) {
			l.must(os.Mkdir(filepath.Join(port, old), 0o700))
			found, err := openLink(version)
			l.must(err)
			info, err := found.Info()
			l.must(err)
			same, err := link.NewFromID(info.ID)
			l.must(err)
			l.must(same.Pin(filepath.Join(port, old, linkPin)))
			l.must(errors.Join(same.Close(), found.Close()))
		}, true, "", nil},
		{"a file of somebody else's", func(l *lab, _, version string) {
			pinMap(l, filepath.Join(version, "theirs"))
		}, true, "", []string{version(1) + "/theirs"}},
		{"a directory of somebody else's", func(l *lab, port, _ string) {
			l.must(os.Mkdir(filepath.Join(port, "theirs"), 0o700))
			pinMap(l, filepath.Join(port, "theirs", linkPin))
		}, true, "", []string{"theirs", "theirs/" + linkPin}},
		{"a version that is a symbolic link", func(l *lab, port, version string) {
			l.must(os.Symlink(version, filepath.Join(port, old)))
		}, true, "", []string{old}},
		{"a link that is a symbolic link", func(l *lab, _, version string) {
			l.must(os.Rename(filepath.Join(version, linkPin), filepath.Join(version, "theirs")))
			l.must(os.Symlink("theirs", filepath.Join(version, linkPin)))
		}, false, "is not a pin", []string{version(1) + "/" + linkPin, version(1) + "/theirs"}},
		{"a link that is a directory", func(l *lab, _, version string) {
			remove(linkPin)(l, "", version)
			l.must(os.Mkdir(filepath.Join(version, linkPin), 0o700))
		}, false, "is not a pin", nil},
		{"somebody else's XDP link", func(l *lab, _, version string) {
			remove(linkPin)(l, "", version)
			dummy, _ := l.veth("x0", "x1", 1)
			theirs := l.attachLink(l.foreign("somebody", ebpf.AttachXDP), dummy, Native)
			l.must(theirs.Pin(filepath.Join(version, linkPin)))
		}, false, "somebody", nil},
		{"a link of another type", func(l *lab, _, version string) {
			remove(linkPin)(l, "", version)
			l.must(l.namespaceLink().Pin(filepath.Join(version, linkPin)))
		}, false, "no XDP link", nil},
	}
	for _, row := range rows {
		t.Run(strings.ReplaceAll(row.name, " ", "-"), func(t *testing.T) {
			inLab(t, func(l *lab) {
				r0, _ := l.veth("r0", "a0", 1)
				o := Options{Ifindex: r0, Ifname: "r0", Queues: 1, PinDir: l.pinDir("r0")}
				former := l.attach(o)
				dir := former.versionDir()
				l.must(former.Close())
				row.damage(l, o.PinDir, dir)

				p, err := Load(o)
				if row.refused != "" {
					files := l.files(l.root())
					if err == nil || !strings.Contains(err.Error(), row.refused) {
						t.Errorf("Load: %v, want an error with %q", err, row.refused)
					}
					if _, err := DetachAll(l.root()); err == nil || !strings.Contains(err.Error(), row.refused) {
						t.Errorf("DetachAll: %v, want an error with %q", err, row.refused)
					}
					if got := l.files(l.root()); !slices.Equal(got, files) {
						t.Errorf("pins %v, were %v", got, files)
					}
					return
				}
				l.must(err)
				if p.Adopted() != row.adopted {
					t.Errorf("adopted %v, want %v", p.Adopted(), row.adopted)
				}
				l.must(p.Attach())
				for _, name := range pinNames() {
					if _, err := os.Lstat(filepath.Join(p.versionDir(), name)); err != nil {
						t.Errorf("not pinned: %v", err)
					}
				}
				if l.verdict(p, 0, 60) != xdpPass || l.counters(p).Passed != 1 {
					t.Error("the program does not run, or counts elsewhere")
				}
				l.must(p.Detach())
				if l.attached(r0).present {
					t.Error("still attached")
				}
				l.expectLeft(o.PinDir, row.stays)
				_, err = DetachAll(l.root())
				if (err != nil) != (len(row.stays) > 0) {
					t.Errorf("DetachAll: %v, want an error if something stays (%v)", err, row.stays)
				}
				l.expectLeft(o.PinDir, row.stays)
			})
		})
	}
}

func (l *lab) expectLeft(dir string, want []string) {
	l.t.Helper()
	var got []string
	for _, path := range l.files(dir) {
		name, err := filepath.Rel(dir, path)
		l.must(err)
		if name != version(1) { // the directory of what stays in it
			got = append(got, name)
		}
	}
	if !slices.Equal(got, want) {
		l.t.Errorf("left %v, want %v", got, want)
	}
}

// namespaceLink is a link that has nothing to do with XDP.
func (l *lab) namespaceLink() link.Link {
	l.t.Helper()
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type:         ebpf.FlowDissector,
		AttachType:   ebpf.AttachFlowDissector,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	l.must(err)
	l.cleanup(func() { program.Close() })
	ns, err := os.Open("/proc/thread-self/ns/net")
	l.must(err)
	defer ns.Close()
	held, err := link.AttachNetNs(int(ns.Fd()), program)
	l.must(err)
	l.cleanup(func() { held.Close() })
	return held
}

func TestIntegrationPinDirectoryMustBeOnBpffs(t *testing.T) {
	inLab(t, func(l *lab) {
		r0, _ := l.veth("r0", "a0", 1)
		plain := t.TempDir()
		occupied := filepath.Join(l.bpffs, "occupied")
		l.must(os.Symlink(plain, occupied))
		for dir, want := range map[string]string{
			filepath.Join(plain, "pins"): "not on a bpf file system",
			occupied:                     "open pin directory",
		} {
			_, err := Load(Options{Ifindex: r0, Ifname: "r0", Queues: 1, PinDir: dir})
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("pin directory %s: got %v, want an error with %q", dir, err, want)
			}
		}
	})
}

// A service may see the bpffs of the host read-only (ProtectSystem, a
// container), or may not write to it. That costs the pins and no more.
func TestIntegrationUnwritableBpffsMeansNoPinsAndNoMore(t *testing.T) {
	const nobody = 65534
	readOnly := func(l *lab) {
		l.must(unix.Mount("", l.bpffs, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	}
	notOurs := func(l *lab) {
		before, err := unix.SetfsuidRetUid(nobody) // of this thread
		l.must(err)
		l.cleanup(func() { unix.Setfsuid(before) })
	}
	rows := []struct {
		name  string
		make  bool // the pin directory, before
		lock  func(*lab)
		cause error
	}{
		{"read-only", false, readOnly, unix.EROFS},
		{"read-only with the directory there", true, readOnly, unix.EROFS},
		{"not ours to write", false, notOurs, unix.EACCES},
		{"not ours to write with the directory there", true, notOurs, unix.EACCES},
	}
	for _, row := range rows {
		t.Run(strings.ReplaceAll(row.name, " ", "-"), func(t *testing.T) {
			inLab(t, func(l *lab) {
				r0, _ := l.veth("r0", "a0", 1)
				o := Options{Ifindex: r0, Ifname: "r0", Queues: 1, PinDir: l.pinDir("r0")}
				if row.make {
					l.must(os.MkdirAll(o.PinDir, 0o700))
				}
				row.lock(l)
				_, err := Load(o)
				if !errors.Is(err, ErrNoPins) || !errors.Is(err, row.cause) {
					l.fatal("got %v, want ErrNoPins for %v", err, row.cause)
				}
				l.oneLine(err.Error(), "port r0", "no pins possible", l.bpffs)
				o.PinDir = ""
				l.must(l.attach(o).Detach())
			})
		})
	}
}
