// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

func TestIntegrationRecorderAccountsForEveryFrame(t *testing.T) {
	const frames = 100_000
	a, b := wire(t, netlab.VethOptions{})
	s := newStream(t, StreamConfig{Flows: 4, Size: Mixed(60, 1514)})
	ctx, r := labtest.Context(t), newRecorder(t, b, "b0", s)
	send := newSender(t, a, "a0", s)
	start := time.Now()
	must(t, send.Send(ctx, frames))
	sent := time.Since(start)
	must(t, r.Wait(ctx, s, frames))
	t.Logf("sent in %v (refused %d), recorded after %v", sent, send.Refused(), time.Since(start))
	if rep := report(t, r, s, send.Sent()); !rep.Complete() || rep.Foreign != 0 {
		t.Error(rep)
	}
}

func TestIntegrationSenderMakesExactBursts(t *testing.T) {
	a, b := wire(t, netlab.VethOptions{})
	s := newStream(t, StreamConfig{})
	ctx, r := labtest.Context(t), newRecorder(t, b, "b0", s)
	send := newSender(t, a, "a0", s)
	for _, burst := range []int{1, 15, 16, 17, 63, 64, 65, 200} {
		must(t, send.Send(ctx, burst))
		must(t, r.Wait(ctx, s, send.Sent()))
		if rep := report(t, r, s, send.Sent()); !rep.Complete() {
			t.Errorf("burst of %d: %v", burst, rep)
		}
	}
}

func TestIntegrationSenderPacesBelowItsRate(t *testing.T) {
	a, b := wire(t, netlab.VethOptions{})
	s := newStream(t, StreamConfig{})
	ctx, r := labtest.Context(t), newRecorder(t, b, "b0", s)
	send := newSender(t, a, "a0", s)
	start := time.Now()
	must(t, send.SendPaced(ctx, 500, 10_000))
	if took := time.Since(start); took < 500*time.Second/10_000-paceTick {
		t.Errorf("500 frames at 10000 a second took only %v", took)
	}
	must(t, r.Wait(ctx, s, 500))
	if rep := report(t, r, s, send.Sent()); !rep.Complete() || send.Sent() != 500 {
		t.Error(rep)
	}
}

// A full queue, which at a busy veth is its ring of 256, must hold the sender
// back and not lose frames. A slow qdisc is full at will.
func TestIntegrationSenderIsHeldBackByAFullQueue(t *testing.T) {
	const frames, rate = 1000, 200 << 10 // bytes a second: 0.3 s of traffic
	a, b := wire(t, netlab.VethOptions{})
	must(t, a.Do(func() error {
		l, err := netlink.LinkByName("a0")
		must(t, err)
		return netlink.QdiscAdd(&netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
			Rate:       rate, Limit: 3000, Buffer: netlink.Xmittime(rate, 3000),
		})
	}))
	s := newStream(t, StreamConfig{})
	ctx, r := labtest.Context(t), newRecorder(t, b, "b0", s)
	send := newSender(t, a, "a0", s)
	must(t, send.Send(ctx, frames))
	must(t, r.Wait(ctx, s, frames))
	if rep := report(t, r, s, send.Sent()); !rep.Complete() || send.Refused() == 0 {
		t.Errorf("refused %d; %v", send.Refused(), rep)
	}
}

// Tests read the counters of a sender that runs beside them; the race detector watches.
func TestIntegrationSenderCountersMayBeReadWhileItSends(t *testing.T) {
	const frames = 20_000
	a, b := wire(t, netlab.VethOptions{})
	s := newStream(t, StreamConfig{})
	ctx, r := labtest.Context(t), newRecorder(t, b, "b0", s)
	send := newSender(t, a, "a0", s)
	done := make(chan error, 1)
	go func() { done <- send.Send(ctx, frames) }()
	last := uint32(0)
	for last < frames && ctx.Err() == nil {
		sent := send.Sent()
		if sent < last {
			t.Fatalf("sent %d, then %d", last, sent)
		}
		last = sent
		_ = send.Refused()
		runtime.Gosched()
	}
	must(t, <-done)
	must(t, r.Wait(ctx, s, frames))
}

func TestIntegrationRecorderSeesTagsAndStreamsApart(t *testing.T) {
	a, b := wire(t, netlab.VethOptions{})
	streams := []*Stream{
		newStream(t, StreamConfig{ID: 1}),
		newStream(t, StreamConfig{ID: 2, Tags: []Tag{{0x8100, 100}}, Size: Mixed(64, 1518)}),
		newStream(t, StreamConfig{ID: 3, Tags: []Tag{{0x88a8, 200}, {0x8100, 7<<13 | 300}}, Size: Mixed(68, 1514)}),
	}
	ctx, r := labtest.Context(t), newRecorder(t, b, "b0", streams...)
	for i, s := range streams {
		send := newSender(t, a, "a0", s)
		must(t, send.Send(ctx, 100*(i+1)))
		must(t, r.Wait(ctx, s, send.Sent()))
		if rep := report(t, r, s, send.Sent()); !rep.Complete() || rep.Foreign != 0 {
			t.Errorf("stream %d: %v", s.cfg.ID, rep)
		}
	}
}

func TestIntegrationOddFramesCrossAWireUnchanged(t *testing.T) {
	a, b := wire(t, netlab.VethOptions{})
	ctx, r := labtest.Context(t), newRecorder(t, b, "b0")
	send := newSender(t, a, "a0", newStream(t, StreamConfig{}))
	odd := OddFrames(macA(), macB())
	for _, f := range odd {
		if err := send.SendRaw(ctx, f.Bytes); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
	must(t, r.WaitForeign(ctx, len(odd)))
	for i, got := range r.Foreign() {
		if !bytes.Equal(got, odd[i].Bytes) {
			t.Errorf("%s: received\n%x, want\n%x", odd[i].Name, got, odd[i].Bytes)
		}
	}
}

func TestOddFramesDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, f := range OddFrames(macA(), macB()) {
		if other, ok := seen[string(f.Bytes)]; ok {
			t.Errorf("%s and %s are one frame", f.Name, other)
		}
		seen[string(f.Bytes)] = f.Name
	}
}

func TestIntegrationRecorderIgnoresWhatItsDeviceSends(t *testing.T) {
	a, b := wire(t, netlab.VethOptions{})
	s := newStream(t, StreamConfig{})
	ctx, here, there := labtest.Context(t), newRecorder(t, a, "a0", s), newRecorder(t, b, "b0", s)
	send := newSender(t, a, "a0", s)
	must(t, send.Send(ctx, 10))
	must(t, there.Wait(ctx, s, 10))
	must(t, here.WaitQuiet(ctx, 5*time.Millisecond))
	if rep := report(t, here, s, 0); rep.Corrupt+rep.Foreign+rep.Duplicates != 0 {
		t.Errorf("at the sending end: %v", rep)
	}
}

// What the recorder itself loses must not look like the forwarder's loss.
func TestIntegrationRecorderCountsItsOwnLoss(t *testing.T) {
	const frames = 2000
	a, b := wire(t, netlab.VethOptions{})
	s := newStream(t, StreamConfig{Size: Fixed(1514)})
	ctx, r := labtest.Context(t), newRecorder(t, b, "b0", s)
	conn, err := r.file.SyscallConn()
	must(t, err)
	must(t, conn.Control(func(fd uintptr) {
		must(t, unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 64<<10))
	}))
	send := newSender(t, a, "a0", s)
	r.mu.Lock() // nobody reads
	err = send.Send(ctx, frames)
	r.mu.Unlock()
	must(t, err)
	var rep Report
	labtest.WaitFor(t, "all frames to arrive or to be lost", func() bool {
		rep = report(t, r, s, frames)
		return rep.Arrived+rep.RecorderLost == frames
	})
	if rep.RecorderLost == 0 || rep.Missing != rep.RecorderLost {
		t.Errorf("%v: want all that is missing lost by the recorder", rep)
	}
}

func TestIntegrationRecorderSurvivesLinkDown(t *testing.T) {
	a, b := wire(t, netlab.VethOptions{})
	s := newStream(t, StreamConfig{})
	ctx, r := labtest.Context(t), newRecorder(t, b, "b0", s)
	send := newSender(t, a, "a0", s)
	must(t, b.SetDown("b0"))
	must(t, b.SetUp("b0"))
	must(t, a.WaitUp(ctx, "a0"))
	must(t, send.Send(ctx, 10))
	must(t, r.Wait(ctx, s, 10))
}

func TestIntegrationSenderEndsWithItsContext(t *testing.T) {
	a, _ := wire(t, netlab.VethOptions{})
	send := newSender(t, a, "a0", newStream(t, StreamConfig{}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := send.Send(ctx, 1); !errors.Is(err, context.Canceled) || send.Sent() != 0 {
		t.Errorf("got %v after %d frames, want %v", err, send.Sent(), context.Canceled)
	}
}

func TestIntegrationRecorderKnowsOnlyItsStreams(t *testing.T) {
	_, b := wire(t, netlab.VethOptions{})
	r := newRecorder(t, b, "b0")
	if _, err := r.Report(newStream(t, StreamConfig{}), 0); err == nil {
		t.Error("a report on a stream that is not recorded")
	}
}

func TestIntegrationErrorsNameMissingDevice(t *testing.T) {
	labtest.Privileged(t)
	ns := labtest.NS(t)
	_, err := NewSender(ns, "nope", newStream(t, StreamConfig{}))
	if want := "device nope: open packet socket: "; err == nil || !bytes.HasPrefix([]byte(err.Error()), []byte(want)) {
		t.Errorf("got %v", err)
	}
	if _, err := NewRecorder(ns, "nope"); err == nil {
		t.Error("recorder on a missing device")
	}
}

func BenchmarkRecorder(b *testing.B) {
	for _, size := range []int{60, 1514} {
		b.Run(fmt.Sprintf("%d-bytes", size), func(b *testing.B) {
			na, nb := wire(b, netlab.VethOptions{})
			s := newStream(b, StreamConfig{Size: Fixed(size)})
			r, send := newRecorder(b, nb, "b0", s), newSender(b, na, "a0", s)
			for b.Loop() {
				must(b, send.Send(b.Context(), 1))
			}
			must(b, r.Wait(labtest.Context(b), s, send.Sent()))
		})
	}
}
