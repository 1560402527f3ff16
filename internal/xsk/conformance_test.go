// SPDX-License-Identifier: Apache-2.0

package xsk_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/asavie/xdp"
	"github.com/google/go-cmp/cmp"

	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
	"github.com/xskfwd/xskfwd/internal/xsk"
	"github.com/xskfwd/xskfwd/internal/xsk/xsktest"
)

// bed is a socket under test and what can be done to the device behind it.
type bed struct {
	t    *testing.T
	s    *xsk.Socket
	free []uint64 // chunks in nobody's hands

	deliver func(n, bytes int) // sends frames to the socket
	link    func(up bool)
	peer    func(up bool)
	remove  func()

	log []string
}

// bedConfig is what both kinds of bed are made with.
type bedConfig struct{ fill, completion, rx, tx, budget uint32 }

const bedFrames = 512

func (b *bed) note(format string, args ...any) { b.log = append(b.log, fmt.Sprintf(format, args...)) }

// chunk takes a chunk that nobody has.
func (b *bed) chunk() uint64 {
	addr := b.free[len(b.free)-1]
	b.free = b.free[:len(b.free)-1]
	return addr
}

// send puts n frames on the TX ring and kicks.
func (b *bed) send(n, bytes int) {
	for range n {
		b.submit(xdp.Desc{Addr: b.chunk(), Len: uint32(bytes)})
	}
	b.kick(fmt.Sprintf("send %d of %d bytes", n, bytes))
}

func (b *bed) submit(d xdp.Desc) {
	idx, got := b.s.Tx.Reserve(1)
	if got == 1 {
		b.s.Tx.Set(idx, d)
		b.s.Tx.Submit(1)
		return
	}
	b.note("tx ring full")
	b.free = append(b.free, d.Addr)
}

func (b *bed) kick(what string) {
	r := b.s.KickTx()
	b.note("%s: calls %d, refused %d, %v, errno %d; tx ring %d", what, r.Calls, r.Refused, r.State, r.Errno, b.s.Tx.Len())
}

// complete waits for n completions and takes them.
func (b *bed) complete(n uint32) {
	labtest.WaitFor(b.t, fmt.Sprintf("%d completions", n), func() bool { return b.s.Completion.Len() >= n })
	idx, got := b.s.Completion.Peek(n)
	for i := range got {
		if addr := b.s.Completion.At(idx + i); addr < bedFrames*2048 {
			b.free = append(b.free, addr)
		} else {
			b.note("completion of %d", addr)
		}
	}
	b.s.Completion.Release(got)
	b.note("completed %d; %d left", got, b.s.Completion.Len())
}

func (b *bed) fill(n int) {
	for range n {
		idx, got := b.s.Fill.Reserve(1)
		if got == 0 {
			b.note("fill ring full")
			return
		}
		b.s.Fill.Set(idx, b.chunk())
		b.s.Fill.Submit(1)
	}
}

// receive delivers frames and waits until each is on the RX ring or counted.
func (b *bed) receive(n, bytes int) {
	before := b.lost() + uint64(b.s.Rx.Len())
	b.deliver(n, bytes)
	labtest.WaitFor(b.t, fmt.Sprintf("%d frames or losses", n), func() bool {
		return b.lost()+uint64(b.s.Rx.Len()) >= before+uint64(n)
	})
	b.note("receive %d of %d bytes: rx ring %d, fill ring %d, %s", n, bytes, b.s.Rx.Len(), b.s.Fill.Len(), b.stats())
}

// take takes n frames off the RX ring.
func (b *bed) take(n uint32) {
	idx, got := b.s.Rx.Peek(n)
	for i := range got {
		d := b.s.Rx.At(idx + i)
		b.note("frame of %d bytes at offset %d", d.Len, d.Addr%2048)
		b.free = append(b.free, d.Addr&^2047)
	}
	b.s.Rx.Release(got)
}

func (b *bed) lost() uint64 {
	st, err := b.s.Statistics()
	if err != nil {
		b.t.Fatal(err)
	}
	return st.Rx_dropped + st.Rx_ring_full
}

func (b *bed) stats() string {
	st, err := b.s.Statistics()
	if err != nil {
		b.t.Fatal(err)
	}
	return fmt.Sprintf("dropped %d, ring full %d, invalid rx %d tx %d, empty fill %d tx %d",
		st.Rx_dropped, st.Rx_ring_full, st.Rx_invalid_descs, st.Tx_invalid_descs, st.Rx_fill_ring_empty_descs, st.Tx_ring_empty_descs)
}

func fakeBed(t *testing.T, cfg bedConfig) *bed {
	u := newUmem(t, bedFrames)
	k := newFake(t, u, xsktest.Config{
		FillEntries: cfg.fill, CompletionEntries: cfg.completion, RxEntries: cfg.rx, TxEntries: cfg.tx,
		TxSkbBudget: cfg.budget,
	})
	b := &bed{t: t, s: k.Socket, link: k.SetLink, remove: k.RemoveDevice}
	b.peer = func(up bool) { k.SetPeerBusy(!up) }
	b.deliver = func(n, bytes int) {
		for range n {
			k.Deliver(make([]byte, bytes))
		}
	}
	return b
}

func vethBed(t *testing.T, cfg bedConfig) *bed {
	p := newPair(t, 1, 2000) // frames of 1793 bytes must get through
	u := mapUmem(t, bedFrames)
	s := open(t, p.far, u, xsk.SocketConfig{
		Ifname: farName, Ifindex: ifindex(t, p.far, farName),
		FillEntries: cfg.fill, CompletionEntries: cfg.completion, RxEntries: cfg.rx, TxEntries: cfg.tx,
		TxSkbBudget: cfg.budget,
	})
	b := &bed{t: t, s: s}
	detach := attach(t, p.far, farName, 1, s)
	b.link = func(up bool) { setLink(t, p.far, farName, up) }
	b.peer = func(up bool) { setLink(t, p.near, nearName, up) }
	b.remove = func() {
		detach()
		if err := p.far.Delete(farName); err != nil {
			t.Fatal(err)
		}
	}
	sender := mapUmem(t, 64)
	tx := open(t, p.near, sender, config(t, p.near, nearName, 0, 64))
	b.deliver = func(n, bytes int) {
		for range n {
			frame := make([]byte, bytes)
			copy(frame, etherHeader)
			pages := take(t, sender, 1)
			queueTx(t, tx, pages, frame)
			tx.KickTx()
			labtest.WaitFor(t, "the sender's completion", func() bool { return tx.Completion.Len() == 1 })
			tx.Completion.Peek(1)
			tx.Completion.Release(1)
			sender.Provider(1).FreePages(pages)
		}
	}
	return b
}

// etherHeader is a broadcast frame of an experimental ethertype, which no
// kernel answers.
const etherHeader = "\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01\x88\xb5"

func setLink(t testing.TB, ns *netlab.NS, name string, up bool) {
	t.Helper()
	set := ns.SetDown
	if up {
		set = ns.SetUp
	}
	if err := set(name); err != nil {
		t.Fatal(err)
	}
	if up {
		if err := ns.WaitUp(labtest.Context(t), name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestIntegrationFakeKernelBehavesLikeTheKernel runs the same scripts against
// the fake and against a veth and compares what they say.
func TestIntegrationFakeKernelBehavesLikeTheKernel(t *testing.T) {
	labtest.Privileged(t)
	usual := bedConfig{fill: 64, completion: 64, rx: 64, tx: 64}
	for _, c := range []struct {
		name   string
		cfg    bedConfig
		script func(*bed)
	}{
		{"one-kick-drains-what-many-calls-move", bedConfig{fill: 64, completion: 256, rx: 64, tx: 256}, func(b *bed) {
			for _, n := range []int{1, 31, 32, 33, 64, 65, 200} {
				b.send(n, 60)
				b.complete(uint32(n))
			}
		}},
		{"raised-budget-needs-one-call", bedConfig{fill: 64, completion: 256, rx: 64, tx: 256, budget: 256}, func(b *bed) {
			b.send(200, 60)
			b.complete(200)
		}},
		{"completion-ring-full-stops-transmit", bedConfig{fill: 64, completion: 4, rx: 64, tx: 64}, func(b *bed) {
			b.send(10, 60)
			b.kick("again")
			b.complete(4)
			b.kick("after 4 completions")
			b.complete(3)
			b.kick("after 3 completions")
			b.complete(3)
		}},
		{"peer-down-refuses-and-completes", usual, func(b *bed) {
			b.peer(false)
			b.send(3, 60)
			b.complete(3)
			b.peer(true)
			b.send(2, 60)
			b.complete(2)
		}},
		{"link-down-keeps-frames", usual, func(b *bed) {
			b.link(false)
			b.send(3, 60)
			b.link(true)
			b.kick("up")
			b.complete(3)
		}},
		{"device-gone", usual, func(b *bed) {
			b.send(1, 60)
			b.complete(1)
			b.remove()
			b.send(1, 60)
			b.note("rx: %v", b.s.KickRx().State)
		}},
		{"invalid-descriptors", usual, func(b *bed) {
			b.submit(xdp.Desc{Addr: 1e9, Len: 60})
			b.submit(xdp.Desc{Addr: b.chunk(), Len: 0})
			b.submit(xdp.Desc{Addr: b.chunk(), Len: 2049})
			b.send(2, 60)
			b.complete(5)
			b.note("%s", b.stats())
		}},
		{"frames-are-received-in-order-with-headroom", usual, func(b *bed) {
			b.fill(8)
			b.receive(1, 60)
			b.receive(1, 1514)
			b.take(64)
		}},
		{"frame-too-long-for-its-chunk", usual, func(b *bed) {
			b.fill(8)
			b.receive(1, 1792)
			b.receive(1, 1793)
			b.take(64)
		}},
		{"fill-ring-empty", usual, func(b *bed) {
			b.receive(2, 60)
			b.fill(2)
			b.receive(3, 60)
			b.take(64)
		}},
		{"rx-ring-full", bedConfig{fill: 64, completion: 64, rx: 4, tx: 64}, func(b *bed) {
			b.fill(8)
			b.receive(6, 60)
			b.take(2)
			b.receive(3, 60)
			b.take(64)
		}},
		{"invalid-fill-address", usual, func(b *bed) {
			idx, _ := b.s.Fill.Reserve(1)
			b.s.Fill.Set(idx, 1e9)
			b.s.Fill.Submit(1)
			b.fill(1)
			b.receive(1, 60)
			b.take(64)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := func(b *bed) string {
				for i := range bedFrames {
					b.free = append(b.free, uint64(i)*2048)
				}
				b.note("fill wake-up %v, tx wake-up %v", b.s.Fill.NeedWakeup(), b.s.Tx.NeedWakeup())
				c.script(b)
				b.note("%s", b.stats())
				return strings.Join(b.log, "\n")
			}
			fake, kernel := run(fakeBed(t, c.cfg)), run(vethBed(t, c.cfg))
			if diff := cmp.Diff(kernel, fake); diff != "" {
				t.Errorf("kernel (-) and fake (+) differ:\n%s\nkernel:\n%s", diff, kernel)
			}
		})
	}
}
