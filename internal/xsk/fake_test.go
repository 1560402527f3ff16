// SPDX-License-Identifier: Apache-2.0

package xsk_test

import (
	"strings"
	"testing"

	"github.com/asavie/xdp"

	"github.com/xskfwd/xskfwd/internal/xsk"
	"github.com/xskfwd/xskfwd/internal/xsk/xsktest"
	"github.com/xskfwd/xskfwd/pagepool"
)

// mustMention fails unless an error's text holds all the words.
func mustMention(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("error does not mention %q: %v", w, err)
		}
	}
}

// newUmem is a UMEM of ordinary memory.
func newUmem(t testing.TB, frames int) *xsk.Umem {
	t.Helper()
	u, err := xsk.NewUmemOver(make([]byte, frames*2048), 2048)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func newFake(t testing.TB, u *xsk.Umem, cfg xsktest.Config) *xsktest.Kernel {
	t.Helper()
	k, err := xsktest.New(u, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Socket.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// take gets pages from the free list for mem id 1.
func take(t testing.TB, u *xsk.Umem, n int) []pagepool.Page {
	t.Helper()
	pages := make([]pagepool.Page, n)
	if got := u.Provider(1).AllocPages(pages); got != n {
		t.Fatalf("free list: got %d pages, want %d", got, n)
	}
	return pages
}

// queueTx puts one frame per page on the TX ring.
func queueTx(t testing.TB, s *xsk.Socket, pages []pagepool.Page, frame []byte) {
	t.Helper()
	idx, got := s.Tx.Reserve(uint32(len(pages)))
	if int(got) != len(pages) {
		t.Fatalf("tx ring: room for %d of %d", got, len(pages))
	}
	for i, p := range pages {
		addr := s.Umem().AddrOf(p)
		copy(s.Umem().Bytes(addr, uint32(len(frame))), frame)
		s.Tx.Set(idx+uint32(i), xdp.Desc{Addr: addr, Len: uint32(len(frame))})
	}
	s.Tx.Submit(got)
}

func TestFakeKernelForwardsWhatItDelivers(t *testing.T) {
	u := newUmem(t, 16)
	k := newFake(t, u, xsktest.Config{FirstIndex: 0xfffffffd})
	for _, p := range take(t, u, 4) {
		idx, _ := k.Socket.Fill.Reserve(1)
		k.Socket.Fill.Set(idx, u.AddrOf(p))
		k.Socket.Fill.Submit(1)
	}
	if got := k.Deliver([]byte("one"), []byte("two")); got != 2 {
		t.Fatalf("delivered: got %d, want 2", got)
	}
	idx, got := k.Socket.Rx.Peek(64)
	if got != 2 {
		t.Fatalf("received: got %d, want 2", got)
	}
	to, _ := k.Socket.Tx.Reserve(got)
	for i := range got {
		k.Socket.Tx.Set(to+i, k.Socket.Rx.At(idx+i))
	}
	k.Socket.Rx.Release(got)
	k.Socket.Tx.Submit(got)
	if r := k.Socket.KickTx(); r != (xsk.KickResult{Calls: 1, State: xsk.Drained}) {
		t.Errorf("kick: got %+v", r)
	}
	sent := k.Sent()
	if len(sent) != 2 || string(sent[0]) != "one" || string(sent[1]) != "two" {
		t.Errorf("sent: got %q", sent)
	}
	if got := k.Socket.Completion.Len(); got != 2 {
		t.Errorf("completions: got %d, want 2", got)
	}
}
