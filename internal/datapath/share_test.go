// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"

	"github.com/xskfwd/xskfwd/internal/xsk"
	"github.com/xskfwd/xskfwd/internal/xsk/xsktest"
	"github.com/xskfwd/xskfwd/pagepool"
)

func TestShareGivesItsPartAndNoMore(t *testing.T) {
	u, err := xsk.NewUmemOver(make([]byte, 100*2048), 2048)
	if err != nil {
		t.Fatal(err)
	}
	s := NewShare(u.Provider(1), 40)
	pages := make([]pagepool.Page, 64)
	expect(t, "pages at first", s.AllocPages(pages), 40)
	expect(t, "pages beyond the share", s.AllocPages(pages[40:]), 0)
	s.FreePages(pages[:10])
	expect(t, "pages after ten came back", s.AllocPages(pages[40:]), 10)
	s.FreePages(pages[10:50])
	expect(t, "free frames", u.FreeFrames(), 100)

	all := NewShare(u.Provider(1), 1000)
	many := make([]pagepool.Page, 200)
	expect(t, "pages of a share larger than the memory", all.AllocPages(many), 100)
	all.FreePages(many[:100])
	expect(t, "bad frees", u.BadFrees(), 0)
}

func TestSmallUmemServesBothEndsOfAWire(t *testing.T) {
	r := newRig(t, rigConfig{frames: 64, share: 32, fillTarget: 16, timer: defaultTimer()})
	in, out := r.all[0], r.all[1]
	for _, u := range r.all {
		expect(t, "posted", u.k.Socket.Fill.Len(), 16)
	}
	for range 10 {
		deliver(t, in.k, frames(10)...)
		deliver(t, out.k, frames(10)...)
		r.poll()
	}
	expect(t, "sent one way", out.k.SentCount(), 100)
	expect(t, "sent the other way", in.k.SentCount(), 100)
	r.mustBeConsistent("at the end")
}

// However many frames a port that hangs may hold, those who do not send to it
// go on receiving.
func TestPortThatHangsTakesNoPagesOfTheOthers(t *testing.T) {
	r := newRig(t, rigConfig{
		queues: []int{1, 1, 1, 1}, frames: 400, share: 100, fillTarget: 32, timer: defaultTimer(),
		kernel: xsktest.Config{TxEntries: 256, CompletionEntries: 256},
	})
	in, out := r.all[0], r.all[1]
	out.k.SetNeedWakeup(false, false) // takes frames and never sends them
	for range 50 {
		in.k.Deliver(frames(30)...)
		deliver(t, r.all[2].k, frames(30)...)
		deliver(t, r.all[3].k, frames(30)...)
		r.poll()
	}
	expect(t, "parked on the ring that hangs", out.k.Socket.Tx.Len(), 100)
	expect(t, "sent by the others", r.all[2].k.SentCount()+r.all[3].k.SentCount(), 3000)
	r.mustBeConsistent("with a port that hangs")
}
