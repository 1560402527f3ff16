// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// withFreeFiles runs f while this process may open about so many more files.
func (l *lab) withFreeFiles(n int, f func()) {
	l.t.Helper()
	probe, err := os.Open(os.DevNull)
	l.must(err)
	lowest := int(probe.Fd())
	l.must(probe.Close())
	var before unix.Rlimit
	l.must(unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	l.must(unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(lowest + n), Max: before.Max}))
	defer func() { l.must(unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) }()
	f()
}

// Whatever step the files run out at, that is what is said, and nothing changes.
func TestIntegrationTooManyOpenFilesAreNamedAtEveryStep(t *testing.T) {
	inLab(t, func(l *lab) {
		r0, _ := l.veth("r0", "a0", 1)
		fresh := Options{Ifindex: r0, Ifname: "r0", Queues: 1}
		l.must(l.attach(fresh).Detach()) // cilium/ebpf remembers for ever what it could not find out
		for free, done := 0, false; !done && free < 100; free++ {
			l.withFreeFiles(free, func() {
				p, err := Load(fresh)
				if err == nil {
					err = p.Attach()
					done = err == nil && p.Mode() == Native
					err = errors.Join(err, p.Detach())
				}
				if !done {
					l.namesFiles(free, err)
				}
			})
		}
		l.nothingLeft(r0)

		pinned := fresh
		pinned.PinDir = l.pinDir("r0")
		l.must(l.attach(pinned).Close())
		before, files := l.attached(r0), len(l.files(l.root()))
		l.withFreeFiles(0, func() {
			if found, err := openLink(filepath.Join(pinned.PinDir, version(1))); found != nil || !errors.Is(err, unix.EMFILE) {
				t.Errorf("pinned link without a file to spare: %v, %v, want EMFILE: it is not known to be rubbish", found, err)
			}
		})
		for free, done := 0, false; !done && free < 100; free++ {
			l.withFreeFiles(free, func() {
				p, err := Load(pinned)
				if err != nil {
					l.namesFiles(free, err)
					return
				}
				if done = true; !p.Adopted() {
					t.Errorf("with %d files: loaded, but not adopted", free)
				}
				l.must(p.Close())
			})
		}
		if after := l.attached(r0); after != before || len(l.files(l.root())) != files {
			t.Errorf("attached %s, was %s; %d pins, were %d", after, before, len(l.files(l.root())), files)
		}
	})
}

func (l *lab) namesFiles(free int, err error) {
	l.t.Helper()
	if !errors.Is(err, unix.EMFILE) || strings.Contains(err.Error(), "CAP_") || strings.Contains(err.Error(), "generic") {
		l.t.Errorf("with %d files: %v, want EMFILE and no talk of capabilities or modes", free, err)
	}
	if strings.Contains(err.Error(), "load redirect program") && !strings.Contains(err.Error(), "LimitNOFILE") {
		l.t.Errorf("with %d files: %v, want the limit named", free, err)
	}
}

func TestLackOfFilesIsNoRefusalOfAMode(t *testing.T) {
	for _, errno := range []error{unix.EMFILE, unix.ENFILE} {
		if isRefusal(fmt.Errorf("attach: %w", errno)) {
			t.Errorf("%v counts as a refusal: generic would be tried", errno)
		}
	}
}

func TestFailedLoadIsGivenTheCureThatFits(t *testing.T) {
	for errno, want := range map[error]string{
		unix.EPERM:  " (needs CAP_BPF and CAP_NET_ADMIN)",
		unix.EMFILE: " (" + moreFiles + ")",
		unix.ENFILE: " (" + moreFiles + ")",
		unix.ENOMEM: "",
		unix.EINVAL: "",
	} {
		if got := loadCure(fmt.Errorf("map create: %w", errno)); got != want {
			t.Errorf("%v: %q, want %q", errno, got, want)
		}
	}
}
