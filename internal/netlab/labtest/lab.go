// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/xskfwd/xskfwd/internal/netlab"
)

// deadline bounds every wait here. It is not a requirement on speed: only a
// test that would hang reaches it.
const deadline = 30 * time.Second

// NS makes an anonymous namespace for the length of the test.
func NS(t testing.TB) *netlab.NS {
	t.Helper()
	return newNS(t, "")
}

// NamedNS makes a namespace with a unique name in /var/run/netns for the
// length of the test.
func NamedNS(t testing.TB) *netlab.NS {
	t.Helper()
	return newNS(t, fmt.Sprintf("%s%08x", namePrefix(), rand.Uint32()))
}

// namePrefix marks the names of this process's namespaces.
func namePrefix() string { return fmt.Sprintf("labtest-%d-", os.Getpid()) }

func newNS(t testing.TB, name string) *netlab.NS {
	t.Helper()
	ns, err := netlab.NewNS(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ns.Close(); err != nil {
			t.Error(err)
		}
	})
	return ns
}

// Veth joins two namespaces by a pair that goes with them.
func Veth(t testing.TB, a *netlab.NS, aName string, b *netlab.NS, bName string, opts netlab.VethOptions) {
	t.Helper()
	if err := netlab.Veth(a, aName, b, bName, opts); err != nil {
		t.Fatal(err)
	}
}

// StartProcess starts a program in a namespace. Whatever is left of it is
// killed when the test ends, and its output is logged if the test failed.
func StartProcess(t testing.TB, ns *netlab.NS, c netlab.Command) *netlab.Process {
	t.Helper()
	p, err := ns.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("output of %s %v:\n%s", c.Path, c.Args, p.Log())
		}
	})
	return p
}

// Context ends at the deadline of waits, or with the test.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	return ctx
}

// WaitFor waits until condition holds and fails the test if it never does.
func WaitFor(t testing.TB, what string, condition func() bool) {
	t.Helper()
	err := netlab.WaitFor(Context(t), func() (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}
