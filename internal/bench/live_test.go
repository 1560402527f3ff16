// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

func newSource(t testing.TB, ns *netlab.NS, cfg SourceConfig) *Source {
	t.Helper()
	cfg.Src, cfg.Dst = macA(), macB()
	s, err := NewSource(ns, "a0", cfg)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func newSink(t testing.TB, ns *netlab.NS, hook SinkHook) *Sink {
	t.Helper()
	s, err := NewSink(ns, "b0", hook)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func sinkCount(t testing.TB, s *Sink) SinkCount {
	t.Helper()
	c, err := s.Count()
	must(t, err)
	return c
}

func sourceSent(t testing.TB, s *Source) uint64 {
	t.Helper()
	n, err := s.Sent()
	must(t, err)
	return n
}

func TestIntegrationSinkCountsEveryFrameOfASource(t *testing.T) {
	rows := []struct {
		name  string
		hook  SinkHook
		size  func(uint32) int
		bytes uint64 // of 12 frames
	}{
		{"xdp-64", SinkXDP, nil, 12 * 64},
		{"xdp-1514", SinkXDP, Fixed(1514), 12 * 1514},
		{"skb-imix", SinkSKB, IMIX, 7*64 + 4*594 + 1514},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			const frames = 12 * 1000
			a, b := wire(t, netlab.VethOptions{B: netlab.End{GRO: true}})
			sink := newSink(t, b, r.hook)
			source := newSource(t, a, SourceConfig{Size: r.size, Rate: 100_000, Frames: frames, Flows: 4})
			must(t, source.Start())
			labtest.WaitFor(t, "all frames to be sent", func() bool { return sourceSent(t, source) == frames })
			must(t, source.Stop())
			want := SinkCount{Packets: frames, Bytes: frames / 12 * r.bytes}
			labtest.WaitFor(t, "all frames to arrive", func() bool { return sinkCount(t, sink).Packets >= frames })
			if got := sinkCount(t, sink); got != want {
				t.Errorf("sink has %+v, want %+v", got, want)
			}
			if n := sourceSent(t, source); n != frames {
				t.Errorf("source sent %d, want it to stop at %d", n, frames)
			}
		})
	}
}

func TestIntegrationSourceMakesValidFramesOfSeveralFlows(t *testing.T) {
	const frames = 48
	a, b := wire(t, netlab.VethOptions{B: netlab.End{GRO: true}})
	r := newRecorder(t, b, "b0")
	source := newSource(t, a, SourceConfig{Size: IMIX, Frames: frames, Flows: 3, Rate: 100_000})
	must(t, source.Start())
	must(t, r.WaitForeign(labtest.Context(t), frames))
	must(t, source.Stop())
	for n, f := range r.Foreign() {
		if len(f) != IMIX(uint32(n)) {
			t.Fatalf("frame %d: %d bytes, want %d", n, len(f), IMIX(uint32(n)))
		}
		if sum := onesComplement(f[14:34]); sum != 0xffff {
			t.Errorf("frame %d: header adds up to %#x, want 0xffff", n, sum)
		}
		if ip, udp := binary.BigEndian.Uint16(f[16:]), binary.BigEndian.Uint16(f[38:]); int(ip) != len(f)-14 || int(udp) != len(f)-34 {
			t.Errorf("frame %d of %d bytes: IP length %d, UDP length %d", n, len(f), ip, udp)
		}
		if src, dst := binary.BigEndian.Uint16(f[34:]), binary.BigEndian.Uint16(f[36:]); int(src) != basePort+n%3 || dst != sinkPort {
			t.Errorf("frame %d: ports %d to %d, want %d to %d", n, src, dst, basePort+n%3, sinkPort)
		}
	}
}

func TestIntegrationSourceStopsWhenToldAndForGood(t *testing.T) {
	a, b := wire(t, netlab.VethOptions{})
	sink := newSink(t, b, SinkXDP)
	source := newSource(t, a, SourceConfig{CPUs: []int{0}})
	must(t, source.Start())
	if err := source.Start(); err == nil {
		t.Error("a running source was started again")
	}
	labtest.WaitFor(t, "frames", func() bool { return sinkCount(t, sink).Packets > 1000 })
	for range 2 {
		must(t, source.Stop())
	}
	n := sourceSent(t, source)
	labtest.WaitFor(t, "the queue between them to drain", func() bool {
		before := sinkCount(t, sink)
		return before == sinkCount(t, sink)
	})
	if again := sourceSent(t, source); again != n {
		t.Errorf("sent %d, then %d: it goes on after Stop", n, again)
	}
	t.Logf("sent %d, arrived %d", n, sinkCount(t, sink).Packets)
}

func TestIntegrationSourceRunsOnItsCPU(t *testing.T) {
	a, b := wire(t, netlab.VethOptions{B: netlab.End{GRO: true}})
	newSink(t, b, SinkXDP)
	source := newSource(t, a, SourceConfig{CPUs: []int{0}, Rate: 1000})
	must(t, source.Start())
	thread := <-source.thread
	source.thread <- thread
	status, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(thread) + "/status")
	must(t, err)
	if _, list, _ := strings.Cut(string(status), "Cpus_allowed_list:\t"); !strings.HasPrefix(list, "0\n") {
		t.Errorf("source's thread may run on %.20q, want CPU 0", list)
	}
	must(t, source.Stop())
}

func TestIntegrationSourceKeepsBelowItsRate(t *testing.T) {
	const frames, rate = 2000, 20_000
	a, b := wire(t, netlab.VethOptions{B: netlab.End{GRO: true}})
	newSink(t, b, SinkXDP)
	source := newSource(t, a, SourceConfig{Rate: rate, Frames: frames})
	start := time.Now()
	must(t, source.Start())
	labtest.WaitFor(t, "all frames to be sent", func() bool { return sourceSent(t, source) == frames })
	if took := time.Since(start); took < time.Second*(frames-50)/rate { // it may catch up 1 ms
		t.Errorf("%d frames at %d a second took only %v", frames, rate, took)
	}
	must(t, source.Stop())
}

func TestIntegrationSinkPassesWhatIsNotTheSources(t *testing.T) {
	for name, hook := range map[string]SinkHook{"xdp": SinkXDP, "skb": SinkSKB} {
		t.Run(name, func(t *testing.T) {
			a, b := wire(t, netlab.VethOptions{})
			sink, r := newSink(t, b, hook), newRecorder(t, b, "b0")
			stream := newStream(t, StreamConfig{})
			send := newSender(t, a, "a0", stream)
			otherPort := stream.Frame(make([]byte, maxFrame), 0)
			otherPort[37]++
			odd := append(OddFrames(macA(), macB()), OddFrame{"other-port", otherPort})
			for _, f := range odd {
				must(t, send.SendRaw(labtest.Context(t), f.Bytes))
			}
			must(t, r.WaitForeign(labtest.Context(t), len(odd)))
			if got := sinkCount(t, sink); got.Packets != 0 {
				t.Errorf("sink counted %+v of other frames", got)
			}
			must(t, send.Send(labtest.Context(t), 1)) // a numbered frame looks like a source's
			labtest.WaitFor(t, "the sink to count it", func() bool { return sinkCount(t, sink).Packets == 1 })
		})
	}
}

func TestIntegrationSourceRefusesWhatItCannotSend(t *testing.T) {
	a, _ := wire(t, netlab.VethOptions{})
	for name, cfg := range map[string]SourceConfig{
		"too short":      {Src: macA(), Dst: macB(), Size: Fixed(20)},
		"too long":       {Src: macA(), Dst: macB(), Size: Fixed(maxLive + 1)},
		"no destination": {Src: macA()},
	} {
		if s, err := NewSource(a, "a0", cfg); err == nil {
			t.Errorf("%s: accepted", name)
			s.Close()
		}
	}
	if _, err := NewSource(a, "nope", SourceConfig{Src: macA(), Dst: macB()}); err == nil || !strings.Contains(err.Error(), "nope") {
		t.Errorf("missing device: %v", err)
	}
	if _, err := NewSink(a, "nope", SinkXDP); err == nil || !strings.Contains(err.Error(), "nope") {
		t.Errorf("missing device: %v", err)
	}
}

func TestIntegrationSourceSendsTheLongestFrame(t *testing.T) {
	a, b := wire(t, netlab.VethOptions{MTU: 3500, B: netlab.End{GRO: true}})
	sink := newSink(t, b, SinkXDP)
	source := newSource(t, a, SourceConfig{Size: Fixed(maxLive), Frames: 10, Rate: 10_000})
	must(t, source.Start())
	labtest.WaitFor(t, "the frames", func() bool { return sinkCount(t, sink).Bytes == 10*maxLive })
	must(t, source.Stop())
}
