// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"os"
	"testing"

	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// promiscRig is a device in a namespace of its own, and a place for notes.
type promiscRig struct {
	t  *testing.T
	ns *netlab.NS
	h  hostState
}

func newPromiscRig(t *testing.T) *promiscRig {
	labtest.Privileged(t)
	r := &promiscRig{t: t, ns: labtest.NS(t), h: hostState{dir: t.TempDir()}}
	labtest.Veth(t, r.ns, "a0", r.ns, "b0", netlab.VethOptions{})
	return r
}

// in runs f in the namespace.
func (r *promiscRig) in(f func() error) {
	r.t.Helper()
	if err := r.ns.Do(f); err != nil {
		r.t.Fatal(err)
	}
}

// make makes the device promiscuous.
func (r *promiscRig) make() error {
	f, err := lookUp("a0")
	if err == nil {
		_, err = r.h.makePromiscuous(f)
	}
	return err
}

func (r *promiscRig) facts() (f facts) {
	r.t.Helper()
	r.in(func() (err error) { f, err = lookUp("a0"); return err })
	return f
}

func (r *promiscRig) expect(promisc bool, notes int) {
	r.t.Helper()
	entries, err := os.ReadDir(r.h.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	if got := r.facts().promisc; got != promisc || len(entries) != notes {
		r.t.Errorf("promiscuous %t with %d notes, want %t with %d", got, len(entries), promisc, notes)
	}
}

func TestIntegrationPromiscuityIsPutBackByANewProcess(t *testing.T) {
	r := newPromiscRig(t)
	f := r.facts()
	for range 2 { // a daemon that was killed, and its successor
		r.in(r.make)
		r.expect(true, 1)
	}
	r.in(func() error { return r.h.restore(f.ifindex) })
	r.expect(false, 0)
	r.in(func() error { return r.h.restore(f.ifindex) }) // nothing to do any more
	r.expect(false, 0)
}

func TestIntegrationPromiscuityOfSomebodyElseIsLeftAlone(t *testing.T) {
	r := newPromiscRig(t)
	f := r.facts()
	r.in(func() error { return setPromisc(f.ifindex, true) })
	r.in(r.make)
	r.expect(true, 0)
	r.in(func() error { return r.h.restore(f.ifindex) })
	r.expect(true, 0)
}

func TestIntegrationPromiscuityOfAllIsPutBackAndNotesAboutNothingGo(t *testing.T) {
	r := newPromiscRig(t)
	r.in(r.make)
	r.in(func() error { // a device that has gone since
		note, err := r.h.note(99999)
		if err != nil {
			return err
		}
		return os.WriteFile(note, nil, 0o644)
	})
	var restored []string
	r.in(func() (err error) { restored, err = r.h.restoreAll(); return err })
	r.expect(false, 0)
	if len(restored) != 2 {
		t.Errorf("put back: got %q", restored)
	}

	other := newPromiscRig(t)
	other.h = r.h
	other.in(other.make)
	r.in(func() (err error) { restored, err = r.h.restoreAll(); return err })
	if len(restored) != 0 {
		t.Errorf("put back in another namespace: got %q", restored)
	}
	other.expect(true, 1)
}

func TestIntegrationPromiscuityIsSetWhereNoNoteCanBeMade(t *testing.T) {
	r := newPromiscRig(t)
	r.h.dir = "/proc/no-directory-can-be-made-here"
	r.in(func() error {
		f, err := lookUp("a0")
		if err != nil {
			return err
		}
		set, err := r.h.makePromiscuous(f)
		if !set || !errors.Is(err, errNoNote) {
			t.Errorf("set %t, error %v; want true and an error about the note", set, err)
		}
		if f, err = lookUp("a0"); err != nil || !f.promisc {
			t.Errorf("promiscuous %t, error %v", f.promisc, err)
		}
		return r.h.clear(f.ifindex)
	})
	if r.facts().promisc {
		t.Error("still promiscuous after clear")
	}
}
