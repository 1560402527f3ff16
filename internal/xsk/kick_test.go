// SPDX-License-Identifier: Apache-2.0

package xsk_test

import (
	"errors"
	"testing"

	"github.com/asavie/xdp"
	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/xsk"
	"github.com/xskfwd/xskfwd/internal/xsk/xsktest"
)

// call is what one scripted sendto does: take so many frames off the TX ring,
// then return errno.
type call struct {
	takes uint32
	errno unix.Errno
}

// plainRings are rings over ordinary memory, and the kernel's end of the TX ring.
func plainRings(t *testing.T, entries int) (rings xsk.Rings, kernelTx *xsk.RxRing) {
	t.Helper()
	var words [4][3]uint32
	shared := func(i int) xsk.Indices {
		return xsk.Indices{Producer: &words[i][0], Consumer: &words[i][1], Flags: &words[i][2]}
	}
	tx := make([]xdp.Desc, entries)
	var errs [5]error
	rings.Fill, errs[0] = xsk.NewProducer(shared(0), make([]uint64, entries))
	rings.Completion, errs[1] = xsk.NewConsumer(shared(1), make([]uint64, entries))
	rings.Rx, errs[2] = xsk.NewConsumer(shared(2), make([]xdp.Desc, entries))
	rings.Tx, errs[3] = xsk.NewProducer(shared(3), tx)
	kernelTx, errs[4] = xsk.NewConsumer(shared(3), tx)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return rings, kernelTx
}

// scripted is a socket whose kernel follows a script; the last line repeats.
func scripted(t *testing.T, mode xsk.Mode, soError unix.Errno, script []call) *xsk.Socket {
	t.Helper()
	rings, kernelTx := plainRings(t, 8)
	step := 0
	next := func() unix.Errno {
		c := script[min(step, len(script)-1)]
		step++
		_, n := kernelTx.Peek(c.takes)
		kernelTx.Release(n)
		return c.errno
	}
	s, err := xsk.NewSocket(newUmem(t, 8), xsk.Identity{Ifname: "script"}, mode, rings, xsk.Kernel{
		FD: -1, Send: next, Recv: next,
		Error: func() unix.Errno { return soError },
		Close: func() error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestKickGivesEveryErrnoItsMeaning(t *testing.T) {
	for _, c := range []struct {
		name     string
		zerocopy bool
		soError  unix.Errno
		script   []call
		want     xsk.KickResult
		left     uint32
	}{
		{name: "all-taken", script: []call{{8, 0}},
			want: xsk.KickResult{Calls: 1, State: xsk.Drained}},
		{name: "again-with-progress-goes-on", script: []call{{3, unix.EAGAIN}, {3, unix.EAGAIN}, {2, 0}},
			want: xsk.KickResult{Calls: 3, State: xsk.Drained}},
		{name: "again-without-progress-stops", script: []call{{3, unix.EAGAIN}, {0, unix.EAGAIN}},
			want: xsk.KickResult{Calls: 2, State: xsk.Again, Errno: unix.EAGAIN}, left: 5},
		{name: "no-memory-with-progress-goes-on", script: []call{{1, unix.ENOBUFS}, {1, unix.ENOMEM}, {6, 0}},
			want: xsk.KickResult{Calls: 3, State: xsk.Drained}},
		{name: "no-buffers-without-progress-stops", script: []call{{0, unix.ENOBUFS}},
			want: xsk.KickResult{Calls: 1, State: xsk.Again, Errno: unix.ENOBUFS}, left: 8},
		{name: "no-memory-without-progress-stops", script: []call{{0, unix.ENOMEM}},
			want: xsk.KickResult{Calls: 1, State: xsk.Again, Errno: unix.ENOMEM}, left: 8},
		{name: "busy-is-one-frame-refused", script: []call{{1, unix.EBUSY}, {1, unix.EBUSY}, {6, 0}},
			want: xsk.KickResult{Calls: 3, Refused: 2, State: xsk.Drained}},
		{name: "busy-whose-progress-does-not-show-yet", script: []call{{0, unix.EBUSY}, {8, 0}},
			want: xsk.KickResult{Calls: 2, Refused: 1, State: xsk.Drained}},
		{name: "interrupted-goes-on", script: []call{{0, unix.EINTR}, {8, 0}},
			want: xsk.KickResult{Calls: 2, State: xsk.Drained}},
		{name: "interrupted-for-ever-is-bounded", script: []call{{0, unix.EINTR}},
			want: xsk.KickResult{Calls: 9, State: xsk.Again, Errno: unix.EINTR}, left: 8},
		{name: "busy-for-ever-is-bounded", script: []call{{0, unix.EBUSY}},
			want: xsk.KickResult{Calls: 9, Refused: 9, State: xsk.Again, Errno: unix.EBUSY}, left: 8},
		{name: "success-without-progress-is-tried-once-more", script: []call{{0, 0}, {8, 0}},
			want: xsk.KickResult{Calls: 2, State: xsk.Drained}},
		{name: "success-without-any-progress-stops", script: []call{{0, 0}},
			want: xsk.KickResult{Calls: 2, State: xsk.Again}, left: 8},
		{name: "link-down", script: []call{{0, unix.ENETDOWN}},
			want: xsk.KickResult{Calls: 1, State: xsk.LinkDown, Errno: unix.ENETDOWN}, left: 8},
		{name: "device-gone", script: []call{{0, unix.ENXIO}},
			want: xsk.KickResult{Calls: 1, State: xsk.Gone, Errno: unix.ENXIO}, left: 8},
		{name: "descriptor-gone", script: []call{{0, unix.EBADF}},
			want: xsk.KickResult{Calls: 1, State: xsk.Gone, Errno: unix.EBADF}, left: 8},
		{name: "unknown-errno", script: []call{{2, unix.EAGAIN}, {0, unix.EPERM}},
			want: xsk.KickResult{Calls: 2, State: xsk.Failed, Errno: unix.EPERM}, left: 6},
		{name: "zero-copy-driver-was-woken", zerocopy: true, script: []call{{0, 0}},
			want: xsk.KickResult{Calls: 1, State: xsk.Drained}, left: 8},
		{name: "zero-copy-driver-is-busy", zerocopy: true, script: []call{{0, unix.EBUSY}},
			want: xsk.KickResult{Calls: 1, State: xsk.Again, Errno: unix.EBUSY}, left: 8},
		{name: "zero-copy-driver-resets", zerocopy: true, script: []call{{0, unix.ENXIO}},
			want: xsk.KickResult{Calls: 1, State: xsk.LinkDown, Errno: unix.ENXIO}, left: 8},
		{name: "zero-copy-device-gone", zerocopy: true, soError: unix.ENETDOWN, script: []call{{0, unix.ENXIO}},
			want: xsk.KickResult{Calls: 1, State: xsk.Gone, Errno: unix.ENXIO}, left: 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := scripted(t, xsk.Mode{Zerocopy: c.zerocopy}, c.soError, c.script)
			s.Tx.Submit(8)
			if got := s.KickTx(); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if got := s.Tx.Len(); got != c.left {
				t.Errorf("left on the ring: got %d, want %d", got, c.left)
			}
		})
	}
}

func TestKickRxGivesEveryErrnoItsMeaning(t *testing.T) {
	for errno, want := range map[unix.Errno]xsk.KickState{
		0: xsk.Drained, unix.EAGAIN: xsk.Again, unix.EBUSY: xsk.Again, unix.EINTR: xsk.Again, unix.ENOBUFS: xsk.Again,
		unix.ENOMEM: xsk.Again, unix.ENETDOWN: xsk.LinkDown, unix.ENXIO: xsk.Gone, unix.EBADF: xsk.Gone, unix.EINVAL: xsk.Failed,
	} {
		s := scripted(t, xsk.Mode{}, 0, []call{{0, errno}})
		if got := s.KickRx(); got.State != want || got.Errno != errno || got.Calls != 1 {
			t.Errorf("%v: got %+v, want %v", errno, got, want)
		}
	}
}

// TestKickOfVanishedDeviceStaysGone: SO_ERROR is cleared by reading it, the
// answer must not be.
func TestKickOfVanishedDeviceStaysGone(t *testing.T) {
	u := newUmem(t, 8)
	k := newFake(t, u, xsktest.Config{Zerocopy: true})
	k.RemoveDevice()
	for i := range 3 {
		if got := k.Socket.KickTx().State; got != xsk.Gone {
			t.Errorf("kick %d: got %v, want %v", i, got, xsk.Gone)
		}
	}
}

// TestKickStallsAndGoesOnWithCompletions is the deadlock of a small completion
// ring: nothing leaves until completions are read, then all does.
func TestKickStallsAndGoesOnWithCompletions(t *testing.T) {
	u := newUmem(t, 64)
	k := newFake(t, u, xsktest.Config{CompletionEntries: 4})
	queueTx(t, k.Socket, take(t, u, 50), []byte("frame"))
	seen := uint32(0)
	for rounds := 0; seen < 50; rounds++ {
		if rounds > 50 {
			t.Fatalf("stuck with %d of 50 completions", seen)
		}
		k.Socket.KickTx()
		_, n := k.Socket.Completion.Peek(64)
		if n > 4 {
			t.Fatalf("completions: got %d in a ring of 4", n)
		}
		k.Socket.Completion.Release(n)
		seen += n
	}
	if got := k.SentCount(); got != 50 {
		t.Errorf("sent: got %d, want 50", got)
	}
}

func TestKickStateNamesAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for s := xsk.Drained; s <= xsk.Failed+1; s++ {
		if name := s.String(); seen[name] || name == "" {
			t.Errorf("state %d: name %q is empty or taken", s, name)
		} else {
			seen[name] = true
		}
	}
}

func TestKickDoesNotAllocate(t *testing.T) {
	u := newUmem(t, 64)
	k := newFake(t, u, xsktest.Config{Discard: true})
	pages := take(t, u, 8)
	round := func() {
		queueTx(t, k.Socket, pages, nil)
		k.Socket.KickTx()
		_, n := k.Socket.Completion.Peek(8)
		k.Socket.Completion.Release(n)
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("allocations: got %v, want 0", n)
	}
}
