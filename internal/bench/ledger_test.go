// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// damage changes a copy of a frame.
func damage(f []byte, change func([]byte) []byte) []byte { return change(bytes.Clone(f)) }

func flip(at int) func([]byte) []byte {
	return func(f []byte) []byte { f[(at+len(f))%len(f)] ^= 1; return f }
}

func TestLedgerTellsFaultsApart(t *testing.T) {
	s := newStream(t, StreamConfig{Flows: 2, Size: Fixed(100)})
	frame := func(n uint32) []byte { return bytes.Clone(s.Frame(make([]byte, maxFrame), n)) }
	rows := []struct {
		name    string
		arrived [][]byte
		want    Report // of 4 sent
	}{
		{"all", [][]byte{frame(0), frame(1), frame(2), frame(3)}, Report{Arrived: 4}},
		{"none", nil, Report{Missing: 4, FirstMissing: []uint32{0, 1, 2, 3}}},
		{"one-missing", [][]byte{frame(0), frame(1), frame(3)}, Report{Arrived: 3, Missing: 1, FirstMissing: []uint32{2}}},
		{"duplicate", [][]byte{frame(0), frame(1), frame(2), frame(3), frame(1)}, Report{Arrived: 4, Duplicates: 1}},
		{"reordered-in-flow", [][]byte{frame(2), frame(1), frame(0), frame(3)}, Report{Arrived: 4, Reordered: 1}},
		{"reordered-between-flows", [][]byte{frame(1), frame(0), frame(3), frame(2)}, Report{Arrived: 4}},
		{"payload-byte", [][]byte{frame(0), damage(frame(1), flip(-1)), frame(2), frame(3)}, Report{Arrived: 4, Corrupt: 1}},
		{"mac-byte", [][]byte{damage(frame(0), flip(0)), frame(1), frame(2), frame(3)}, Report{Arrived: 4, Corrupt: 1}},
		{"number-byte", [][]byte{frame(0), frame(1), frame(2), damage(frame(3), flip(s.record+9))},
			Report{Arrived: 3, Missing: 1, Corrupt: 1, FirstMissing: []uint32{3}}},
		{"cut", [][]byte{frame(0), frame(1), frame(2), damage(frame(3), func(f []byte) []byte { return f[:99] })}, Report{Arrived: 4, Corrupt: 1}},
		{"lengthened", [][]byte{frame(0), frame(1), frame(2), append(frame(3), 0)}, Report{Arrived: 4, Corrupt: 1}},
		{"never-sent", [][]byte{frame(0), frame(1), frame(2), frame(3), frame(4)}, Report{Arrived: 4, Corrupt: 1}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			l := newLedger(s)
			for _, f := range r.arrived {
				if !l.enter(f) {
					t.Errorf("frame %x was taken for a foreign one", f)
				}
			}
			r.want.Sent = 4
			got := l.report(4)
			if got.Corrupt > 0 && l.firstCorrupt == nil && r.name != "never-sent" {
				t.Error("the corrupt frame was not kept")
			}
			got.FirstCorrupt = nil
			if diff := cmp.Diff(r.want, got); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLedgerLeavesForeignFramesToOthers(t *testing.T) {
	mine, other := newStream(t, StreamConfig{ID: 1}), newStream(t, StreamConfig{ID: 2})
	tagged := newStream(t, StreamConfig{ID: 1, Tags: []Tag{{0x8100, 1}}})
	l := newLedger(mine)
	for name, f := range map[string][]byte{
		"other stream": other.Frame(make([]byte, maxFrame), 0),
		"tagged":       tagged.Frame(make([]byte, maxFrame), 0),
		"short":        make([]byte, 10),
	} {
		if l.enter(f) {
			t.Errorf("%s was entered", name)
		}
	}
}

func TestLedgerExpectsWhatAForwarderMustChange(t *testing.T) {
	lowerTTL := func(f []byte) { f[22]--; f[24]++ } // and the checksum with it
	s := newStream(t, StreamConfig{Expect: lowerTTL})
	frame := s.Frame(make([]byte, maxFrame), 0)
	l := newLedger(s)
	l.enter(frame)
	if l.corrupt != 1 {
		t.Errorf("unchanged frame: corrupt %d, want 1", l.corrupt)
	}
	lowerTTL(frame)
	l.enter(frame)
	if l.corrupt != 1 {
		t.Errorf("changed frame: corrupt %d, want still 1", l.corrupt)
	}
}

func TestReportSaysWhatIsWrong(t *testing.T) {
	s := newStream(t, StreamConfig{})
	l := newLedger(s)
	l.enter(damage(s.Frame(make([]byte, maxFrame), 0), flip(-1)))
	r := l.report(2)
	if r.Intact() || r.Complete() {
		t.Errorf("%v is neither intact nor complete", r)
	}
	for _, part := range []string{"sent 2", "arrived 1", "missing 1", "corrupt 1", "first missing [1]", "first corrupt 02"} {
		if !strings.Contains(r.String(), part) {
			t.Errorf("report %q lacks %q", r, part)
		}
	}
	if r := (Report{Missing: 1}); !r.Intact() || r.Complete() {
		t.Error("a loss must leave a report intact but not complete")
	}
}
