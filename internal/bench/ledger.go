// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"fmt"
)

// Report is what became of the first Sent frames of a stream.
type Report struct {
	Sent       uint64
	Arrived    uint64 // numbers that arrived, each counted once
	Missing    uint64 // Sent - Arrived
	Duplicates uint64 // arrivals of a number beyond its first
	Reordered  uint64 // arrivals after a later number of their flow
	Corrupt    uint64 // arrivals with a wrong byte or length, or a number never sent

	FirstMissing []uint32 // some of them
	FirstCorrupt []byte   // the first corrupt frame as it came

	// RecorderLost counts frames that reached the recorder's socket and found
	// it full. They may be among Missing, and then are not the forwarder's fault.
	RecorderLost uint64
	Foreign      uint64 // frames of no known stream
}

// Intact says whether what arrived is right: every byte, once, in order.
func (r Report) Intact() bool { return r.Duplicates == 0 && r.Reordered == 0 && r.Corrupt == 0 }

// Complete says whether all arrived and is right.
func (r Report) Complete() bool { return r.Missing == 0 && r.Intact() }

func (r Report) String() string {
	s := fmt.Sprintf("sent %d, arrived %d, missing %d, duplicates %d, reordered %d, corrupt %d, lost by the recorder %d, foreign %d",
		r.Sent, r.Arrived, r.Missing, r.Duplicates, r.Reordered, r.Corrupt, r.RecorderLost, r.Foreign)
	if len(r.FirstMissing) > 0 {
		s += fmt.Sprintf("; first missing %v", r.FirstMissing)
	}
	if r.FirstCorrupt != nil {
		s += fmt.Sprintf("; first corrupt %x", r.FirstCorrupt)
	}
	return s
}

// firstMissing bounds the list of missing numbers in a report; more than a
// few help nobody.
const firstMissing = 8

// ledger keeps account of the arrivals of one stream.
type ledger struct {
	stream *Stream
	want   []byte // scratch: the frame as it should be
	seen   []uint64
	last   []int64 // highest number so far, by flow; -1: none

	arrived, duplicates, reordered, corrupt uint64
	firstCorrupt                            []byte
}

func newLedger(s *Stream) *ledger {
	l := &ledger{stream: s, want: make([]byte, maxFrame), last: make([]int64, s.cfg.Flows)}
	for i := range l.last {
		l.last[i] = -1
	}
	return l
}

// enter books a frame. It returns false if the frame is not of this stream.
func (l *ledger) enter(frame []byte) bool {
	n, mine, whole := l.stream.number(frame)
	if !mine {
		return false
	}
	if !whole || n >= maxFrames || !bytes.Equal(frame, l.expected(n)) {
		l.corrupt++
		if l.firstCorrupt == nil {
			l.firstCorrupt = bytes.Clone(frame)
		}
	}
	if whole && n < maxFrames {
		l.book(n)
	}
	return true
}

func (l *ledger) expected(n uint32) []byte {
	f := l.stream.Frame(l.want, n)
	if l.stream.cfg.Expect != nil {
		l.stream.cfg.Expect(f)
	}
	return f
}

func (l *ledger) book(n uint32) {
	word, bit := int(n/64), uint64(1)<<(n%64)
	if word >= len(l.seen) {
		l.seen = append(l.seen, make([]uint64, word+1-len(l.seen))...)
	}
	if l.seen[word]&bit != 0 {
		l.duplicates++
		return
	}
	l.seen[word] |= bit
	l.arrived++
	last := &l.last[l.stream.Flow(n)]
	if int64(n) < *last {
		l.reordered++
	}
	*last = max(*last, int64(n))
}

// report compares the books with what was sent. A number that was never sent
// is no arrival but corruption.
func (l *ledger) report(sent uint32) Report {
	r := Report{Sent: uint64(sent), Duplicates: l.duplicates, Reordered: l.reordered, Corrupt: l.corrupt, FirstCorrupt: l.firstCorrupt}
	for n := range sent {
		if int(n/64) < len(l.seen) && l.seen[n/64]&(1<<(n%64)) != 0 {
			r.Arrived++
			continue
		}
		r.Missing++
		if len(r.FirstMissing) < firstMissing {
			r.FirstMissing = append(r.FirstMissing, n)
		}
	}
	r.Corrupt += l.arrived - r.Arrived
	return r
}
