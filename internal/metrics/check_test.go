// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"testing"
)

func TestCheckPassesWhenEverythingAddsUp(t *testing.T) {
	for _, queues := range []int{0, 1, 4} {
		s := busy(queues)
		if err := s.Check(); err != nil {
			t.Errorf("%d queues: %v", queues, err)
		}
	}
	if err := new(Snapshot).Check(); err != nil {
		t.Errorf("empty snapshot: %v", err)
	}
}

func TestCheckNamesBothSidesOfWhatDoesNotAddUp(t *testing.T) {
	cases := map[string]struct {
		spoil func(s *Snapshot)
		want  []string // in the error
	}{
		"frame lost from the census": {
			func(s *Snapshot) { s.Umems[0].Census.Tx-- },
			[]string{"umem umem0", "Tx:5", "is 331, but frames is 332"},
		},
		"frame counted twice in the census": {
			func(s *Snapshot) { s.Umems[0].Census.Free++ },
			[]string{"is 333, but frames is 332", "frames not free is 231, but sum of inflight frames of its pools is 232"},
		},
		"place below zero": {
			func(s *Snapshot) { s.Umems[0].Census.Fill, s.Umems[0].Census.Rx = 23, -1 },
			[]string{"umem umem0: -1 frames in state rx"},
		},
		"frame held at rest": {
			func(s *Snapshot) { s.Umems[0].Census.Held, s.Umems[0].Census.Tx = 1, 5 },
			[]string{"frames held is 1, but what workers at rest hold is 0"},
		},
		"cache of the pools and of the census": {
			func(s *Snapshot) { s.Umems[0].Census.Cache--; s.Umems[0].Census.Ring++ },
			[]string{"census cache is 119, but sum of cache frames of its pools is 120", "census ring is 81, but"},
		},
		"frame handed out and not counted": {
			func(s *Snapshot) { s.Pools[1].AllocFast-- },
			[]string{"page pool eth1:0: handed out is 977, but alloc fast + refill + slow is 976"},
		},
		"frame returned and not counted": {
			func(s *Snapshot) { s.Pools[0].RecycleRing-- },
			[]string{"page pool eth0:0: returned is 967, but recycle cached + ring + ring_full + released_refcnt is 966"},
		},
		"inflight": {
			func(s *Snapshot) { s.Pools[0].Inflight-- },
			[]string{"page pool eth0:0: inflight is 115, but cache + ring + handed out and not home yet is 116"},
		},
		"bulk flushes": {
			func(s *Snapshot) { s.Pools[0].Bulk.FlushesFull++ },
			[]string{"page pool eth0:0: bulk flushes by reason is 62, but bulk flushes by length is 61"},
		},
		"bulk frames": {
			func(s *Snapshot) { s.Pools[0].Bulk.FlushedFrames++ },
			[]string{"bulk flushed frames is 924, but sum of the bulk lengths is 923"},
		},
		"frame of an unknown pool": {
			func(s *Snapshot) { s.Pools[0].Bulk.Unknown++ },
			[]string{"frames of unknown pools is 1, but"},
		},
		"packet dropped without a reason": {
			func(s *Snapshot) { s.Ports[1].Queues[0].TransmitDrops[2].Packets-- },
			[]string{"port eth0: received is 1000, but transmitted by the partner + drops + in flight is 999"},
		},
		"packet both sent and dropped": {
			func(s *Snapshot) { s.Ports[1].Queues[0].ReceiveDrops[3].Packets++ },
			[]string{"port eth1: received is 1000, but transmitted by the partner + drops + in flight is 1001"},
		},
		"packet in flight": {
			func(s *Snapshot) { s.Ports[0].InFlight = 0 },
			[]string{"port eth0: received is 1000, but transmitted by the partner + drops + in flight is 997"},
		},
		"packet that never arrived": {
			func(s *Snapshot) { s.Ports[0].Queues[0].ReceiveDrops[0].Unreceived = false },
			[]string{"port eth0: received is 1000, but transmitted by the partner + drops + in flight is 1031"},
		},
		"partner that is not there": {
			func(s *Snapshot) { s.Ports[0].Partner = "eth7" },
			[]string{"port eth0: its partner eth7 is not in the snapshot"},
		},
		"port without a wire that lets frames through": {
			func(s *Snapshot) { s.Ports[0].Partner = "" },
			[]string{"port eth0: received is 1000, but transmitted by the partner + drops + in flight is 13"},
		},
		"timer": {
			func(s *Snapshot) { s.Ports[0].TxTimer.Running = 0 },
			[]string{"port eth0: tx timers armed is 30, but fired + cancelled + running is 29"},
		},
	}
	for name, c := range cases {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			s := busy(1)
			c.spoil(&s)
			err := s.Check()
			if err == nil {
				t.Fatal("nothing was found")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestCheckFindsAllThatIsWrongAtOnce(t *testing.T) {
	s := busy(1)
	s.Umems[0].Census.Free++
	s.Pools[0].AllocFast++
	s.Ports[1].TxTimer.Armed++
	err := s.Check()
	for _, want := range []string{"umem umem0:", "page pool eth0:0:", "port eth1:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

// Workers that run publish at different moments, so that one place may show frames too many and the next as many below zero.
func TestCheckCensusAllowsCutsOfDifferentMoments(t *testing.T) {
	s := busy(1)
	s.Umems[0].Census.Rx -= 20
	s.Umems[0].Census.Fill += 20
	s.Ports[0].Queues[0].ReceivePackets += 20
	if err := s.CheckCensus(); err != nil {
		t.Error(err)
	}
	s.Umems[0].Census.Fill--
	if err := s.CheckCensus(); err == nil {
		t.Error("a frame that is nowhere was not found")
	}
}
