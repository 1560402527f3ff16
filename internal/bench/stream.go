// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net"
	"net/netip"
)

// A numbered frame is Ethernet, VLAN tags if any, IPv4, UDP, a record, and a
// pattern to its end. Everything in it follows from the stream and the number,
// so that the receiver can build it again and compare every byte.
const (
	macBytes    = 12
	tagBytes    = 4
	typeBytes   = 2
	ipv4Bytes   = 20
	udpBytes    = 8
	recordBytes = 14 // magic, stream, number, CRC of the three

	// minFrame is the shortest untagged numbered frame. It must not exceed
	// 60, the shortest frame Ethernet carries.
	minFrame = macBytes + typeBytes + ipv4Bytes + udpBytes + recordBytes

	recordMagic = 0x58664c42
	basePort    = 10000
	sinkPort    = 9 // discard; the Sink counts this port too

	// patternBytes is the length of the random text payloads are cut from. A
	// power of two much larger than a frame, so that the payloads of frames
	// that could be taken for each other differ.
	patternBytes = 1 << 16
)

var _ [60 - minFrame]struct{} // a numbered frame fits into 60 bytes

// Tag is a VLAN tag.
type Tag struct {
	Type uint16 // 0x8100 or 0x88a8
	TCI  uint16 // priority, DEI and VLAN id
}

// StreamConfig describes a stream of numbered frames.
type StreamConfig struct {
	ID       uint16 // tells streams apart at one recorder
	Src, Dst net.HardwareAddr
	SrcIP    netip.Addr         // zero: 10.77.0.2
	DstIP    netip.Addr         // zero: 10.77.0.3
	Flows    int                // UDP source ports, used in turn; 0 is 1
	Size     func(n uint32) int // length of frame n without FCS; nil: 60
	Tags     []Tag              // outermost first
	Expect   func(frame []byte) // what a forwarder must change; nil: nothing
}

// Stream makes the frames of a StreamConfig. It may be shared by goroutines.
type Stream struct {
	cfg     StreamConfig
	header  []byte // up to the record, for length 0
	record  int    // offset of the record
	pattern []byte
}

// NewStream checks a configuration and prepares its frames.
func NewStream(cfg StreamConfig) (*Stream, error) {
	if len(cfg.Src) != 6 || len(cfg.Dst) != 6 {
		return nil, errors.New("stream: source and destination MAC must be given")
	}
	if !cfg.SrcIP.IsValid() {
		cfg.SrcIP = netip.AddrFrom4([4]byte{10, 77, 0, 2})
	}
	if !cfg.DstIP.IsValid() {
		cfg.DstIP = netip.AddrFrom4([4]byte{10, 77, 0, 3})
	}
	if !cfg.SrcIP.Is4() || !cfg.DstIP.Is4() {
		return nil, fmt.Errorf("stream: %v and %v must be IPv4 addresses", cfg.SrcIP, cfg.DstIP)
	}
	if cfg.Size == nil {
		cfg.Size = Fixed(60)
	}
	cfg.Flows = max(cfg.Flows, 1)
	s := &Stream{cfg: cfg, pattern: make([]byte, patternBytes)}
	s.header = s.makeHeader()
	s.record = len(s.header)
	rand.NewChaCha8([32]byte{byte(cfg.ID), byte(cfg.ID >> 8)}).Read(s.pattern)
	return s, nil
}

func (s *Stream) makeHeader() []byte {
	h := append(append([]byte(nil), s.cfg.Dst...), s.cfg.Src...)
	for _, tag := range s.cfg.Tags {
		h = binary.BigEndian.AppendUint16(h, tag.Type)
		h = binary.BigEndian.AppendUint16(h, tag.TCI)
	}
	h = append(h, 0x08, 0x00)
	return append(h, ipv4UDP(s.cfg.SrcIP, s.cfg.DstIP)...)
}

// ipv4UDP is the two headers with length, id, checksum and source port left
// to be filled in.
func ipv4UDP(src, dst netip.Addr) []byte {
	h := make([]byte, ipv4Bytes+udpBytes)
	h[0], h[8], h[9] = 0x45, 64, 17 // version and header length, TTL, UDP
	copy(h[12:], src.AsSlice())
	copy(h[16:], dst.AsSlice())
	binary.BigEndian.PutUint16(h[ipv4Bytes+2:], sinkPort)
	return h
}

// Flow is the flow frame n belongs to.
func (s *Stream) Flow(n uint32) int { return int(n % uint32(s.cfg.Flows)) }

// Frame writes frame n into buf, which must have room for the longest, and
// returns it. A size below the shortest possible is raised to it.
func (s *Stream) Frame(buf []byte, n uint32) []byte {
	size := max(s.cfg.Size(n), s.record+recordBytes)
	f := buf[:size]
	copy(f, s.header)
	ip := s.record - ipv4Bytes - udpBytes
	fillHeaders(f[ip:], n, basePort+uint16(s.Flow(n)))
	fillRecord(f[s.record:], s.cfg.ID, n)
	// Frames of one size class follow each other closely; an odd step gives each its own text.
	start := int(n*61) & (patternBytes/2 - 1)
	fill := f[s.record+recordBytes:]
	for len(fill) > 0 {
		fill = fill[copy(fill, s.pattern[start:]):]
	}
	return f
}

// fillHeaders completes IPv4 and UDP. The UDP checksum stays 0, "none".
func fillHeaders(ip []byte, n uint32, port uint16) {
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	binary.BigEndian.PutUint16(ip[4:], uint16(n))
	binary.BigEndian.PutUint16(ip[10:], checksum(ip[:ipv4Bytes]))
	udp := ip[ipv4Bytes:]
	binary.BigEndian.PutUint16(udp, port)
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
}

func fillRecord(r []byte, id uint16, n uint32) {
	binary.BigEndian.PutUint32(r, recordMagic)
	binary.BigEndian.PutUint16(r[4:], id)
	binary.BigEndian.PutUint32(r[6:], n)
	binary.BigEndian.PutUint32(r[10:], crc32.ChecksumIEEE(r[:10]))
}

// number reads the record of a received frame. mine is false if the frame is
// no numbered frame of this stream; whole is false if its record is damaged.
func (s *Stream) number(frame []byte) (n uint32, mine, whole bool) {
	if len(frame) < s.record+recordBytes {
		return 0, false, false
	}
	r := frame[s.record:]
	if binary.BigEndian.Uint32(r) != recordMagic || binary.BigEndian.Uint16(r[4:]) != s.cfg.ID {
		return 0, false, false
	}
	return binary.BigEndian.Uint32(r[6:]), true, binary.BigEndian.Uint32(r[10:]) == crc32.ChecksumIEEE(r[:10])
}

// checksum is the Internet checksum of a header whose checksum field is 0.
func checksum(header []byte) uint16 {
	sum := wordSum(header)
	sum = sum&0xffff + sum>>16
	return ^uint16(sum + sum>>16)
}

// wordSum adds the 16-bit words of a header.
func wordSum(header []byte) uint32 {
	var sum uint32
	for i := 0; i+1 < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	return sum
}
