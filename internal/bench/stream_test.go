// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// onesComplement adds 16-bit words as RFC 1071 writes it down: over a header
// with its right checksum the sum is all ones.
func onesComplement(b []byte) uint32 {
	sum := uint32(0)
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(b[0])<<8 + uint32(b[1])
		for sum > 0xffff {
			sum -= 0xffff
		}
	}
	return sum
}

func TestStreamFrameIsValidIPv4OfItsSize(t *testing.T) {
	s := newStream(t, StreamConfig{Flows: 3, Size: Mixed(60, 1514)})
	buf := make([]byte, maxFrame)
	for n := range uint32(5000) {
		f := s.Frame(buf, n)
		if got, want := len(f), s.cfg.Size(n); got != want {
			t.Fatalf("frame %d: %d bytes, want %d", n, got, want)
		}
		if sum := onesComplement(f[14:34]); sum != 0xffff {
			t.Fatalf("frame %d: header adds up to %#x, want 0xffff", n, sum)
		}
		if ip, udp := binary.BigEndian.Uint16(f[16:]), binary.BigEndian.Uint16(f[38:]); int(ip) != len(f)-14 || int(udp) != len(f)-34 {
			t.Fatalf("frame %d of %d bytes: IP length %d, UDP length %d", n, len(f), ip, udp)
		}
		if port := binary.BigEndian.Uint16(f[34:]); int(port) != basePort+int(n%3) {
			t.Fatalf("frame %d: source port %d, want flow %d", n, port, n%3)
		}
	}
}

func TestStreamFrameFollowsFromItsNumber(t *testing.T) {
	s := newStream(t, StreamConfig{Size: Mixed(60, 1514)})
	clean, dirty := make([]byte, maxFrame), bytes.Repeat([]byte{0xee}, maxFrame)
	seen := map[string]uint32{}
	for n := range uint32(2000) {
		f := s.Frame(clean, n)
		if !bytes.Equal(f, s.Frame(dirty, n)) {
			t.Fatalf("frame %d depends on what was in its buffer", n)
		}
		if other, ok := seen[string(f[s.record+recordBytes:])]; ok && len(f) > 100 {
			t.Fatalf("frames %d and %d have one pattern", n, other)
		}
		seen[string(f[s.record+recordBytes:])] = n
	}
}

func TestStreamShortestFramesWithAndWithoutTags(t *testing.T) {
	for tags, want := range []int{60, 60, 64} {
		s := newStream(t, StreamConfig{Tags: make([]Tag, tags)})
		f := s.Frame(make([]byte, maxFrame), 7)
		if len(f) != want {
			t.Errorf("%d tags: %d bytes, want %d", tags, len(f), want)
		}
		if n, mine, whole := s.number(f); n != 7 || !mine || !whole {
			t.Errorf("%d tags: number %d, mine %v, whole %v", tags, n, mine, whole)
		}
	}
}

func TestSizesKeepTheirBounds(t *testing.T) {
	low, high := 1<<20, 0
	for n := range uint32(20000) {
		size := Mixed(60, 1514)(n)
		low, high = min(low, size), max(high, size)
	}
	if low != 60 || high != 1514 {
		t.Errorf("mixed sizes from %d to %d, want 60 to 1514", low, high)
	}
	count := map[int]int{}
	for n := range uint32(120) {
		count[IMIX(n)]++
	}
	if count[64] != 70 || count[594] != 40 || count[1514] != 10 {
		t.Errorf("IMIX of 120 frames: %v", count)
	}
}

func TestStreamRefusesWhatItCannotSend(t *testing.T) {
	if _, err := NewStream(StreamConfig{Src: macA()}); err == nil {
		t.Error("a stream without destination was made")
	}
}

func BenchmarkStreamFrame(b *testing.B) {
	s := newStream(b, StreamConfig{Size: Fixed(1514)})
	buf := make([]byte, maxFrame)
	b.ReportAllocs()
	for n := uint32(0); b.Loop(); n++ {
		s.Frame(buf, n)
	}
}
