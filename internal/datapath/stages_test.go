// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/xsk/xsktest"
)

func TestReceiveTakesUpToTheBudgetInOrder(t *testing.T) {
	for _, c := range []struct{ there, budget, want int }{
		{0, 64, 0}, {1, 64, 1}, {63, 64, 63}, {64, 64, 64}, {100, 64, 64}, {100, 10, 10}, {100, 1000, Weight},
	} {
		r := newRig(t, rigConfig{kernel: xsktest.Config{FillEntries: 128, RxEntries: 128, TxEntries: 128}})
		in, out := r.all[0], r.all[1]
		deliver(t, in.k, frames(c.there)...)
		expect(t, "received", in.q.Poll(c.budget), c.want)
		expect(t, "left on the RX ring", int(in.k.Socket.Rx.Len()), c.there-c.want)
		expect(t, "pending", in.q.Pending(), c.there > c.want)
		for i, f := range out.k.Sent() {
			if !bytes.Equal(f, frame(0, uint64(i), 64)) {
				t.Fatalf("frame %d is not the %dth that came", i, i)
			}
		}
		expect(t, "sent", int(out.k.SentCount()), c.want)
		expect(t, "rx bytes", in.q.c.RxBytes, uint64(64*c.want))
		expect(t, "tx bytes", in.q.c.TxBytes, uint64(64*c.want))
	}
}

func TestRefillIsBoundedByFillTarget(t *testing.T) {
	r := newRig(t, rigConfig{fillTarget: 24, kernel: xsktest.Config{HoldCompletions: true}})
	in := r.all[0]
	expect(t, "posted at first", in.k.Socket.Fill.Len(), 24)
	deliver(t, in.k, frames(10)...)
	in.q.refill() // frames on the RX ring are out too
	expect(t, "posted while ten wait on the RX ring", in.k.Socket.Fill.Len(), 14)
	in.q.Poll(Weight)
	in.q.Poll(Weight)
	expect(t, "posted after they were received", in.k.Socket.Fill.Len(), 24)
	expect(t, "refills that fell short", in.q.c.RefillShort, 0)
}

func TestRefillNeverPostsMoreThanTheTargetWhateverIsOut(t *testing.T) {
	r := newRig(t, rigConfig{fillTarget: 32})
	in := r.all[0]
	in.q.fillTarget = 16 // fewer than are out
	in.q.refill()
	expect(t, "posted", in.k.Socket.Fill.Len(), 32)
	expect(t, "pages taken from the free list", r.umem.Frames()-r.umem.FreeFrames(), 2*64)
}

func TestRefillIsBoundedByThePoolAndSaysSo(t *testing.T) {
	r := newRig(t, rigConfig{queues: []int{1, 1}, frames: 40, fillTarget: 20, kernel: xsktest.Config{HoldCompletions: true}})
	in, out := r.all[0], r.all[1] // the first pool has all forty
	expect(t, "free frames", r.umem.FreeFrames(), 0)
	expect(t, "posted by the pool without pages", out.k.Socket.Fill.Len(), 0)
	for range 2 {
		deliver(t, in.k, frames(20)...)
		in.q.Poll(Weight)
	}
	expect(t, "sent and held by the kernel", out.k.InFlight(), 40)
	short := in.q.c.RefillShort
	in.q.Poll(Weight)
	expect(t, "refills that fell short", in.q.c.RefillShort-short, 1)
	expect(t, "frames delivered without a page", in.k.Deliver(frames(1)...), 0)
	expect(t, "pending without a page", in.q.Pending(), false)
	out.k.Complete(40)
	out.q.Poll(Weight)
	expect(t, "pending when pages are home", in.q.Pending(), true)
	in.q.Poll(Weight)
	expect(t, "pending with all posted", in.q.Pending(), false)
	expect(t, "posted when pages are home", in.k.Socket.Fill.Len(), 20)
}

func TestRefillKicksOnlyWhenTheDriverWantsIt(t *testing.T) {
	r := newRig(t, rigConfig{})
	in := r.all[0]
	round := func() { deliver(t, in.k, frames(3)...); r.poll(); r.poll() }
	round()
	expect(t, "fill kicks with the flag clear", in.q.c.FillKicks, 0)
	in.k.SetNeedWakeup(true, true)
	round()
	expect(t, "fill kicks with the flag set", in.q.c.FillKicks, 1)
	r.poll()
	expect(t, "fill kicks with nothing to post", in.q.c.FillKicks, 1)
}

func TestForwardDropsWhatNoDeviceSendsByLength(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		want DropReason
		sent bool
	}{
		{"empty", 0, DropRunt, false}, {"one-byte", 1, DropRunt, false}, {"header-less-one", 13, DropRunt, false},
		{"bare-header", 14, 0, true}, {"minimum", 60, 0, true}, {"mtu", testMTU + 14, 0, true},
		{"mtu-and-tag", largest, 0, true}, {"one-too-long", largest + 1, DropTooLong, false}, {"chunk", 2048 - xsktest.Headroom, DropTooLong, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, rigConfig{})
			in, out := r.all[0], r.all[1]
			f := frame(1, 2, c.n)
			deliver(t, in.k, f)
			r.poll()
			sent := out.k.Sent()
			if c.sent {
				if len(sent) != 1 || !bytes.Equal(sent[0], f) {
					t.Errorf("sent: got %x, want %x", sent, f)
				}
				expect(t, "dropped", in.q.c.Dropped(), 0)
				return
			}
			expect(t, "sent", len(sent), 0)
			expect(t, "dropped for the reason", in.q.c.Drops[c.want], 1)
			expect(t, "dropped", in.q.c.Dropped(), 1)
		})
	}
}

func TestForwardDropsOutOfTheMiddleAndKeepsOrder(t *testing.T) {
	r := newRig(t, rigConfig{})
	in, out := r.all[0], r.all[1]
	lengths := []int{64, 13, 65, largest + 1, 66, 0, 67}
	for i, n := range lengths {
		deliver(t, in.k, frame(0, uint64(i), n))
	}
	r.poll()
	var got []int
	for _, f := range out.k.Sent() {
		got = append(got, len(f))
	}
	if len(got) != 4 || got[0] != 64 || got[1] != 65 || got[2] != 66 || got[3] != 67 {
		t.Errorf("sent lengths: got %v, want 64 to 67", got)
	}
	expect(t, "runts", in.q.c.Drops[DropRunt], 2)
	expect(t, "too long", in.q.c.Drops[DropTooLong], 1)
	expect(t, "census", r.census(in).Held, 0)
}

func TestForwardFollowsTheEgressMTU(t *testing.T) {
	r := newRig(t, rigConfig{})
	in, out := r.all[0], r.all[1]
	out.maxBytes.Store(MaxFrameBytes(1000))
	deliver(t, in.k, frame(0, 0, 1018), frame(0, 1, 1019))
	deliver(t, out.k, frame(0, 0, 1019)) // the other way the other port's MTU counts
	r.poll()
	expect(t, "sent", out.k.SentCount(), 1)
	expect(t, "too long", in.q.c.Drops[DropTooLong], 1)
	expect(t, "sent the other way", in.k.SentCount(), 1)
}

func TestTransmitDropsWhatTheRingDoesNotTake(t *testing.T) {
	r := newRig(t, rigConfig{kernel: xsktest.Config{FillEntries: 256, RxEntries: 256, TxEntries: 64}, frames: 1024})
	in, out := r.all[0], r.all[1]
	out.k.SetNeedWakeup(false, false) // nobody moves the ring
	deliver(t, in.k, frames(150)...)
	for range 3 {
		r.poll()
	}
	expect(t, "on the TX ring", out.k.Socket.Tx.Len(), 64)
	expect(t, "dropped", in.q.c.Drops[DropTxRingFull], 150-64)
	expect(t, "all drops", in.q.c.Dropped(), 150-64)
	expect(t, "kicks", in.q.c.Kicks.Calls, 0)
	if in.q.c.Kicks.Unneeded == 0 {
		t.Error("the clear need-wakeup flag was not noticed")
	}
	out.k.Transmit(64)
	expect(t, "sent", out.k.SentCount(), 64)
}

func TestTransmitUsesTheRoomItsKickMade(t *testing.T) {
	r := newRig(t, rigConfig{kernel: xsktest.Config{FillEntries: 128, RxEntries: 128, CompletionEntries: 256, TxEntries: 64}, frames: 1024})
	in, out := r.all[0], r.all[1]
	out.k.SetNeedWakeup(false, false)
	deliver(t, in.k, frames(40)...)
	in.q.Poll(Weight) // forty lie on the ring
	out.k.SetNeedWakeup(false, true)
	deliver(t, in.k, frames(64)...)
	in.q.Poll(Weight)
	expect(t, "sent", out.k.SentCount(), 104)
	expect(t, "dropped", in.q.c.Dropped(), 0)
}

func TestTransmitKicksAsOftenAsOneBatchNeedsAndNeverWhenIdle(t *testing.T) {
	r := newRig(t, rigConfig{})
	in, out := r.all[0], r.all[1]
	deliver(t, in.k, frames(64)...)
	r.poll()
	expect(t, "sent", out.k.SentCount(), 64)
	expect(t, "kicks", in.q.c.Kicks.Calls, 2) // 32 a call
	r.poll()
	r.poll()
	expect(t, "kicks when idle", in.q.c.Kicks.Calls+out.q.c.Retries.Calls, 2)
}

func TestTransmitParksTheFirstBatchOfADownLinkAndDropsTheRest(t *testing.T) {
	r := newRig(t, rigConfig{timer: defaultTimer()})
	in, out := r.all[0], r.all[1]
	out.k.SetLink(false)
	deliver(t, in.k, frames(20)...)
	r.poll()
	expect(t, "parked", out.k.Socket.Tx.Len(), 20)
	for range 5 {
		deliver(t, in.k, frames(30)...)
		r.poll()
	}
	expect(t, "still parked", out.k.Socket.Tx.Len(), 20)
	expect(t, "dropped", in.q.c.Drops[DropLinkDown], 150)
	expect(t, "all drops", in.q.c.Dropped(), 150)
	expect(t, "fill ring of the other port", in.k.Socket.Fill.Len(), 64-30) // refilled by each poll
	expect(t, "on the way out", r.census(in).Tx, 20)

	out.k.SetLink(true)
	r.poll() // no traffic: the owner of the ring retries
	expect(t, "sent after link-up", out.k.SentCount(), 20)
	deliver(t, in.k, frames(30)...)
	r.poll()
	r.poll()
	expect(t, "sent", out.k.SentCount(), 50)
	expect(t, "dropped at the end", in.q.c.Dropped(), 150)
	c := r.census(in)
	expect(t, "on the way out at the end", c.Tx+c.Done+c.Held, 0)
}

func TestTransmitKeepsOrderOverALinkThatComesBackWithTraffic(t *testing.T) {
	r := newRig(t, rigConfig{timer: defaultTimer()})
	in, out := r.all[0], r.all[1]
	out.k.SetLink(false)
	deliver(t, in.k, frame(0, 0, 64))
	in.q.Poll(Weight)
	out.k.SetLink(true)
	deliver(t, in.k, frame(0, 1, 64))
	in.q.Poll(Weight)
	sent := out.k.Sent()
	if len(sent) != 2 || !bytes.Equal(sent[0], frame(0, 0, 64)) || !bytes.Equal(sent[1], frame(0, 1, 64)) {
		t.Errorf("sent: got %x", sent)
	}
}

func TestTransmitCountsEachRefusedFrameOnce(t *testing.T) {
	r := newRig(t, rigConfig{})
	in, out := r.all[0], r.all[1]
	out.k.SetPeerBusy(true)
	deliver(t, in.k, frames(40)...)
	r.poll()
	out.k.SetPeerBusy(false)
	r.poll()
	r.poll()
	expect(t, "refused", in.q.c.Kicks.Refused+out.q.c.Retries.Refused, 40)
	expect(t, "handed over", in.q.c.TxPackets, 40)
	expect(t, "dropped here", in.q.c.Dropped(), 0)
	expect(t, "sent", out.k.SentCount(), 0)
	c := r.census(in)
	expect(t, "on the way out", c.Tx+c.Done+c.Held, 0)
}

func TestTransmitDeliversAllThroughACompletionRingOfFour(t *testing.T) {
	r := newRig(t, rigConfig{kernel: xsktest.Config{CompletionEntries: 4}})
	in, out := r.all[0], r.all[1]
	for n := range uint64(1000) {
		deliver(t, in.k, frame(0, n, 64))
		r.poll()
	}
	deliver(t, in.k, frames(60)...)
	for range 20 {
		r.poll()
	}
	expect(t, "sent", out.k.SentCount(), 1060)
	expect(t, "dropped", in.q.c.Dropped(), 0)
	if in.q.c.Kicks.Again+out.q.c.Retries.Again == 0 {
		t.Error("the kernel never said EAGAIN: this is no test of it")
	}
}

func TestTransmitCopesWithPassingErrnos(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM, unix.EINVAL, unix.EPERM} {
		r := newRig(t, rigConfig{})
		in, out := r.all[0], r.all[1]
		out.k.SetFault(errno)
		deliver(t, in.k, frames(10)...)
		r.poll()
		expect(t, "sent", out.k.SentCount(), 0)
		before := out.q.c.Retries.Calls
		r.poll()
		expect(t, "calls of a retry", out.q.c.Retries.Calls-before, 1)
		out.k.SetFault(0)
		r.poll()
		r.poll()
		expect(t, "sent when it has passed", out.k.SentCount(), 10)
		expect(t, "held", r.census(in).Held, 0)
	}
}

func TestTransmitDoesNotKickADriverThatPollsByItself(t *testing.T) {
	r := newRig(t, rigConfig{kernel: xsktest.Config{Zerocopy: true}})
	in, out := r.all[0], r.all[1]
	out.k.SetNeedWakeup(false, false)
	deliver(t, in.k, frames(10)...)
	r.poll()
	r.poll()
	expect(t, "kicks", in.q.c.Kicks.Calls+out.q.c.Retries.Calls, 0)
	expect(t, "sent by the driver itself", out.k.Transmit(64), 10)
	out.k.SetNeedWakeup(false, true)
	deliver(t, in.k, frames(10)...)
	r.poll()
	expect(t, "sent by a kick", out.k.SentCount(), 20)
	expect(t, "kicks with the flag set", in.q.c.Kicks.Calls, 1)
}

func TestTransmitToAGoneDeviceParksOneBatchOnly(t *testing.T) {
	r := newRig(t, rigConfig{timer: defaultTimer()})
	in, out := r.all[0], r.all[1]
	out.k.RemoveDevice()
	for range 10 {
		deliver(t, in.k, frames(10)...)
		r.poll()
	}
	expect(t, "parked", out.k.Socket.Tx.Len(), 10)
	expect(t, "dropped", in.q.c.Drops[DropLinkDown], 90)
	expect(t, "sent", out.k.SentCount(), 0)
	expect(t, "held", r.census(in).Held, 0)
	deliver(t, out.k, frames(5)...) // the other direction goes on
	r.poll()
	expect(t, "sent the other way", in.k.SentCount(), 5)
}

func TestCleanLeavesCompletionsAloneThatAreNoFrame(t *testing.T) {
	r := newRig(t, rigConfig{})
	in, out := r.all[0], r.all[1]
	free := r.umem.PageOf(uint64(r.umem.Frames()-1) * 2048)
	if r.umem.MemOf(r.umem.AddrOf(free)) != 0 {
		t.Fatal("the last frame is not free")
	}
	bad := []uint64{1_000_000_000, 1 << 63, ^uint64(0), r.umem.Size(), r.umem.AddrOf(free)}
	for _, addr := range bad {
		out.k.CompleteAddr(addr)
	}
	r.poll()
	expect(t, "bad completions", out.q.c.BadCompletions, uint64(len(bad)))
	deliver(t, in.k, frames(30)...)
	r.poll()
	r.poll()
	expect(t, "sent", out.k.SentCount(), 30)
	c := r.census(in)
	expect(t, "pages out", c.Tx+c.Done+c.Held, 0)
}

// A frame that is not being sent must not come home by a completion: it would
// be in two places from then on.
func TestCleanLeavesCompletionsAloneThatWereNeverSent(t *testing.T) {
	r := newRig(t, rigConfig{})
	in, out := r.all[0], r.all[1]
	posted := in.k.Places().Fill[0]
	for range 3 {
		out.k.CompleteAddr(posted)
	}
	r.poll()
	expect(t, "bad completions", out.q.c.BadCompletions, 3)
	r.mustBeConsistent("after completions of a posted frame")
}
