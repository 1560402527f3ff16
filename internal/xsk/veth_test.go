// SPDX-License-Identifier: Apache-2.0

package xsk_test

import (
	"sync"
	"testing"

	"github.com/asavie/xdp"

	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
	"github.com/xskfwd/xskfwd/internal/xsk"
)

// vethPair is two ends, each in a namespace of its own. Frames sent on one end
// by AF_XDP are received at the other if it has a program, see attach.
type vethPair struct {
	near, far *netlab.NS
}

const (
	nearName = "near"
	farName  = "far"
)

// newPair makes a pair with that many queues at both ends. An MTU of 0 is 1500.
func newPair(t testing.TB, queues, mtu int) vethPair {
	t.Helper()
	labtest.Privileged(t)
	p := vethPair{labtest.NS(t), labtest.NS(t)}
	labtest.Veth(t, p.near, nearName, p.far, farName, netlab.VethOptions{Queues: queues, MTU: mtu})
	return p
}

func ifindex(t testing.TB, ns *netlab.NS, name string) int {
	t.Helper()
	link, err := ns.Link(name)
	if err != nil {
		t.Fatal(err)
	}
	return link.Index
}

func do(t testing.TB, ns *netlab.NS, f func() error) {
	t.Helper()
	if err := ns.Do(f); err != nil {
		t.Fatal(err)
	}
}

// mapUmem is a UMEM the kernel can take.
func mapUmem(t testing.TB, frames int) *xsk.Umem {
	t.Helper()
	u, err := xsk.NewUmem(xsk.UmemConfig{Frames: frames, FrameSize: 2048, HugePages: xsk.HugeNever})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	})
	return u
}

// config is a socket of a device with rings of the given size.
func config(t testing.TB, ns *netlab.NS, name string, queue, entries uint32) xsk.SocketConfig {
	t.Helper()
	return xsk.SocketConfig{
		Ifname: name, Ifindex: ifindex(t, ns, name), Queue: queue,
		FillEntries: entries, CompletionEntries: entries, RxEntries: entries, TxEntries: entries,
	}
}

// tryOpen opens in a namespace.
func tryOpen(ns *netlab.NS, u *xsk.Umem, cfg xsk.SocketConfig) (s *xsk.Socket, err error) {
	err = ns.Do(func() error {
		s, err = u.Open(cfg)
		return err
	})
	return s, err
}

func open(t testing.TB, ns *netlab.NS, u *xsk.Umem, cfg xsk.SocketConfig) *xsk.Socket {
	t.Helper()
	s, err := tryOpen(ns, u, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// attach puts a redirecting program on a device for the test, and the sockets in
// its map by their queue. It returns what takes the program off before the end.
func attach(t testing.TB, ns *netlab.NS, name string, queues int, sockets ...*xsk.Socket) (detach func()) {
	t.Helper()
	index := ifindex(t, ns, name)
	program, err := xdp.NewProgram(queues)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	do(t, ns, func() error { return program.Attach(index) })
	detach = sync.OnceFunc(func() {
		if err := ns.Do(func() error { return program.Detach(index) }); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(detach)
	for _, s := range sockets {
		if err := program.Register(s.Queue(), s.FD()); err != nil {
			t.Fatal(err)
		}
	}
	return detach
}

func TestIntegrationOpenSendsAndReceives(t *testing.T) {
	p := newPair(t, 1, 0)
	near, far := mapUmem(t, 64), mapUmem(t, 64)
	tx := open(t, p.near, near, config(t, p.near, nearName, 0, 64))
	cfg := config(t, p.far, farName, 0, 64)
	cfg.Post = take(t, far, 32)
	rx := open(t, p.far, far, cfg)
	attach(t, p.far, farName, 1, rx)

	frame := make([]byte, 60)
	copy(frame, etherHeader+"hello")
	queueTx(t, tx, take(t, near, 3), frame)
	if r := tx.KickTx(); r != (xsk.KickResult{Calls: 1, State: xsk.Drained}) {
		t.Errorf("kick: got %+v", r)
	}
	labtest.WaitFor(t, "3 frames and 3 completions", func() bool { return rx.Rx.Len() == 3 && tx.Completion.Len() == 3 })
	idx, _ := rx.Rx.Peek(3)
	d := rx.Rx.At(idx)
	if got := string(far.Bytes(d.Addr, d.Len)); got != string(frame) {
		t.Errorf("received: got %q, want %q", got, frame)
	}
}
