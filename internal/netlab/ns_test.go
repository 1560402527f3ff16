// SPDX-License-Identifier: Apache-2.0

package netlab_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// identity is the namespace of the thread it runs on.
func identity() (string, error) { return os.Readlink("/proc/thread-self/ns/net") }

func identityOf(t *testing.T, ns *netlab.NS) string {
	t.Helper()
	var id string
	err := ns.Do(func() (err error) {
		id, err = identity()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestIntegrationNSNamedIsFoundByNsenter(t *testing.T) {
	labtest.Privileged(t)
	ns := labtest.NamedNS(t)
	if want := "/var/run/netns/" + ns.Name(); ns.Path() != want {
		t.Errorf("path %s, want %s", ns.Path(), want)
	}
	out, err := exec.Command("nsenter", "--net="+ns.Path(), "readlink", "/proc/self/ns/net").CombinedOutput()
	if err != nil {
		t.Fatalf("nsenter: %v: %s", err, out)
	}
	if got, want := strings.TrimSpace(string(out)), identityOf(t, ns); got != want {
		t.Errorf("nsenter is in %s, want %s", got, want)
	}
}

func TestIntegrationNSAnonymousHasPath(t *testing.T) {
	labtest.Privileged(t)
	ns := labtest.NS(t)
	got, err := os.Readlink(ns.Path())
	if err != nil {
		t.Fatal(err)
	}
	if want := identityOf(t, ns); got != want {
		t.Errorf("path leads to %s, want %s", got, want)
	}
}

func TestIntegrationNSCloseIsCompleteAndIdempotent(t *testing.T) {
	labtest.Privileged(t)
	ns := labtest.NamedNS(t)
	for range 2 {
		if err := ns.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(ns.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("name after close: %v, want it gone", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), ns.Name()) {
		t.Error("mount is left after close")
	}
	if err := ns.Do(func() error { return nil }); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Do after close: %v, want %v", err, os.ErrClosed)
	}
}

func TestIntegrationNSRefusesTakenName(t *testing.T) {
	labtest.Privileged(t)
	first := labtest.NamedNS(t)
	if _, err := netlab.NewNS(first.Name()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second namespace of one name: %v, want %v", err, fs.ErrExist)
	}
	identityOf(t, first) // the first one is still whole
}

func TestNSRefusesNameThatIsAPath(t *testing.T) {
	for _, name := range []string{"../x", "a/b", "..", "."} {
		if _, err := netlab.NewNS(name); err == nil {
			t.Errorf("name %q was taken", name)
		}
	}
}

func TestIntegrationNSDoLeavesOtherThreadsAlone(t *testing.T) {
	labtest.Privileged(t)
	home, err := os.Readlink("/proc/self/ns/net") // the main thread's
	if err != nil {
		t.Fatal(err)
	}
	ns := labtest.NS(t)
	away := identityOf(t, ns)
	var wg sync.WaitGroup
	for range 200 { // many, so that the main thread would be hit if it could be
		wg.Go(func() {
			if got := identityOf(t, ns); got != away {
				t.Errorf("inside Do: namespace %s, want %s", got, away)
			}
			if got, _ := identity(); got != home {
				t.Errorf("beside Do: namespace %s, want %s", got, home)
			}
			runtime.Gosched()
		})
	}
	wg.Wait()
	if got, _ := os.Readlink("/proc/self/ns/net"); got != home {
		t.Errorf("main thread is in %s, want %s", got, home)
	}
}

func TestIntegrationNSDoReturnsWhenFunctionEndsItsGoroutine(t *testing.T) {
	labtest.Privileged(t)
	ns := labtest.NS(t)
	if err := ns.Do(func() error { runtime.Goexit(); return nil }); err == nil {
		t.Error("no error from a function that did not return")
	}
}

func TestIntegrationNSDoPassesErrorOn(t *testing.T) {
	labtest.Privileged(t)
	want := errors.New("mine")
	if err := labtest.NS(t).Do(func() error { return want }); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}
