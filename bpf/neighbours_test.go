// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

func (l *lab) rename(from, to string) {
	l.t.Helper()
	l.must(netlink.LinkSetDown(l.device(from)))
	l.must(netlink.LinkSetName(l.device(from), to))
	l.up(to)
}

// leave leaves a program pinned on a new interface, as a daemon that died does.
func (l *lab) leave(name, peer string) (o Options) {
	l.t.Helper()
	ifindex, _ := l.veth(name, peer, 2)
	o = Options{Ifindex: ifindex, Ifname: name, Queues: 1, PinDir: l.pinDir(name)}
	l.must(l.attach(o).Close())
	return o
}

func TestIntegrationPinsFollowARenamedInterface(t *testing.T) {
	for name, queues := range map[string]int{"same-version": 1, "another-version": 2} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(l *lab) {
				old := l.leave("r0", "a0")
				before := l.attached(old.Ifindex)
				l.rename("r0", "lan0")

				o := Options{Ifindex: old.Ifindex, Ifname: "lan0", Queues: queues, PinDir: l.pinDir("lan0")}
				p := l.load(o)
				if p.Adopted() != (queues == 1) || p.link == nil {
					t.Errorf("adopted %v with %d queues, link %v, want the former one", p.Adopted(), queues, p.link)
				}
				l.must(p.Attach())
				if after := l.attached(o.Ifindex); (after == before) != p.Adopted() {
					t.Errorf("attached %s, was %s", after, before)
				}
				if files := l.files(old.PinDir); len(files) != 0 {
					t.Errorf("left under the former name: %v", files)
				}
				l.must(p.Close())
				p = l.load(o)
				if !p.Adopted() {
					t.Error("not adopted once more")
				}
				l.must(p.Detach())
				l.nothingLeft(o.Ifindex)
			})
		})
	}
}

// The new name may have been another interface's, which left pins as well.
func TestIntegrationPinsMoveOverThoseOfADeletedInterface(t *testing.T) {
	inLab(t, func(l *lab) {
		r0, o := l.leave("r0", "a0"), l.leave("lan0", "b0")
		l.remove("lan0")
		l.rename("r0", "lan0")
		o.Ifindex = r0.Ifindex
		p := l.load(o)
		if !p.Adopted() {
			t.Error("not adopted")
		}
		l.must(p.Attach())
		l.must(p.Detach())
		l.nothingLeft(o.Ifindex)
	})
}

func TestIntegrationSwappedNamesAreCuredByDetachAll(t *testing.T) {
	inLab(t, func(l *lab) {
		o, r1 := l.leave("r0", "a0"), l.leave("r1", "b0")
		l.rename("r0", "x")
		l.rename("r1", "r0")
		l.rename("x", "r1")
		o.Ifindex = r1.Ifindex
		_, err := Load(o)
		if err == nil {
			l.fatal("a port was loaded over the pins of another")
		}
		l.oneLine(err.Error(), "had this name before", "run xskfwd detach first")
		_, err = DetachAll(l.root())
		l.must(err)
		l.must(l.attach(o).Detach())
		l.nothingLeft(o.Ifindex)
	})
}

func TestIntegrationRenamedInterfaceOfALivingDaemonStaysItsOwn(t *testing.T) {
	inLab(t, func(l *lab) {
		r0, _ := l.veth("r0", "a0", 1)
		held := l.attach(Options{Ifindex: r0, Ifname: "r0", Queues: 1, PinDir: l.pinDir("r0")})
		l.rename("r0", "lan0")
		before, files := l.attached(r0), l.files(l.pinDir("r0"))
		p := l.load(Options{Ifindex: r0, Ifname: "lan0", Queues: 1, PinDir: l.pinDir("lan0")})
		err := p.Attach()
		if !errors.Is(err, ErrOccupied) {
			l.fatal("got %v, want ErrOccupied", err)
		}
		l.oneLine(err.Error(), "another xskfwd runs on it", "xskfwd detach")
		l.must(p.Close())
		if after := l.attached(r0); after != before || !slices.Equal(files, l.files(l.pinDir("r0"))) {
			t.Errorf("attached %s, was %s; pins %v, were %v", after, before, l.files(l.pinDir("r0")), files)
		}
		l.must(held.Detach())
		l.nothingLeft(r0)
	})
}

// Equal indices in two namespaces are the rule, not the exception.
func TestIntegrationStartRemovesWhatIsStaleAndNothingElse(t *testing.T) {
	inLab(t, func(l *lab) {
		var stale, alive []string
		var twin Options
		l.elsewhere(func() {
			twin = l.leave("r0", "a0")
			gone := l.leave("gone", "b0")
			l.remove("gone")
			stale, alive = append(stale, gone.PinDir), append(alive, twin.PinDir)
		})
		r0, _ := l.veth("r0", "a0", 1)
		if r0 != twin.Ifindex {
			l.fatal("interface indices are %d and %d, want the same in both namespaces", r0, twin.Ifindex)
		}
		alive = append(alive, l.leave("r2", "c0").PinDir)
		stale = append(stale, l.leave("gone", "b0").PinDir)
		held, _ := l.veth("held", "d0", 1)
		l.attach(Options{Ifindex: held, Ifname: "held", Queues: 1, PinDir: l.pinDir("held")})
		alive = append(alive, l.pinDir("held")) // its device goes, but its daemon lives
		l.remove("gone")
		l.remove("held")

		p := l.load(Options{Ifindex: r0, Ifname: "r0", Queues: 1, PinDir: l.pinDir("r0")})
		if p.Adopted() {
			t.Error("a program of another namespace was adopted")
		}
		for _, dir := range stale {
			if files := l.files(dir); len(files) != 0 {
				t.Errorf("stale: %v", files)
			}
		}
		for _, dir := range alive {
			if files := l.files(dir); len(files) != 1+len(pinNames()) {
				t.Errorf("%s has %v, want a version and its pins", dir, files)
			}
		}
	})
}

// A neighbour that starts, or xskfwd detach, may hold the lock for a moment.
func TestIntegrationLoadWaitsForALockThatIsHeldForAMoment(t *testing.T) {
	inLab(t, func(l *lab) {
		o := l.leave("r0", "a0")
		lock, err := lockDir(o.PinDir)
		l.must(err)
		time.AfterFunc(lockPatience/10, func() { lock.file.Close() })
		if !l.load(o).Adopted() {
			t.Error("not adopted")
		}
	})
}
