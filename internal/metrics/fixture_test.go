// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// busy is a router that has run for a while: two ports on one wire, every field filled, and every identity holding.
func busy(queues int) Snapshot {
	s := Snapshot{
		Daemon: Daemon{
			Version: "v1.2.3", Revision: "0123abcd", GoVersion: "go1.26",
			StartTime: time.Unix(1_700_000_000, 0), ConfigLoaded: time.Unix(1_700_000_001, 500_000_000), ConfigOK: true,
		},
		Umems: []Umem{{Name: "umem0", FrameSizeBytes: 2048}},
		Ports: []Port{busyPort("eth0", "eth1", queues), busyPort("eth1", "eth0", queues)},
	}
	u := &s.Umems[0]
	for _, port := range s.Ports {
		for q := range queues {
			pool := busyPool(fmt.Sprintf("%s:%d", port.Name, q))
			s.Pools = append(s.Pools, pool)
			u.Census.Cache += int64(pool.CacheFrames)
			u.Census.Ring += int64(pool.RingFrames)
			u.Census.Fill += 7
			u.Census.Rx += 4
			u.Census.Tx += 3
			u.Census.Completion += 2
			u.Frames += uint64(pool.Inflight)
		}
	}
	u.Census.Free = 100
	u.Frames += 100
	u.SizeBytes = u.Frames * u.FrameSizeBytes
	for w := range queues {
		s.Workers = append(s.Workers, busyWorker(w))
	}
	return s
}

func busyPort(name, partner string, queues int) Port {
	p := Port{
		Name: name, Partner: partner, Kind: "nic", Ifname: name, Driver: "veth", XDPMode: "native", MAC: "02:00:00:00:00:01",
		Up: true, AdminUp: true, MTUBytes: 1500,
		InFlight:  3 * uint64(queues),
		XDP:       XDPStatistics{Redirected: 1000, Partner: 20, Passed: 3, Orphaned: 1},
		TxTimer:   TxTimer{Armed: 30, Fired: 17, Cancelled: 12, Skipped: 400, Running: 1, Syscalls: 42, FramesSchedule: 5},
		TxFlushes: TxFlushes{BatchFull: 6, PollEnd: 70},
	}
	for q := range queues {
		p.Queues = append(p.Queues, busyQueue(q))
	}
	return p
}

// busyQueue receives 1000 frames: of those 3 are in flight, 10 are dropped on the way in, 27 on the way out, and 960 leave.
func busyQueue(index int) Queue {
	return Queue{
		Index: index, ReceivePackets: 1000, ReceiveBytes: 64_000, TransmitPackets: 960, TransmitBytes: 61_440,
		ReceiveDrops: []Drop{
			{Reason: ReasonNoFrame, Packets: 31, Unreceived: true}, {Reason: ReasonRingFull, Packets: 32, Unreceived: true},
			{Reason: ReasonTooLong, Packets: 33, Unreceived: true}, {Reason: ReasonRunt, Packets: 10}, {Reason: ReasonUnset},
		},
		TransmitDrops: []Drop{
			{Reason: ReasonRingFull, Packets: 5}, {Reason: ReasonLinkDown, Packets: 6}, {Reason: ReasonMTU, Packets: 7},
			{Reason: ReasonRefused, Packets: 8}, {Reason: ReasonInvalidDesc, Packets: 1},
		},
		XSK: XSKStatistics{RxDropped: 64, RxInvalidDescs: 1, TxInvalidDescs: 2, RxRingFull: 32, RxFillRingEmptyDescs: 31,
			TxRingEmptyDescs: 5},
		InvalidCompletions: 2,
		FillRing:           Ring{Entries: 7, NeedWakeup: true}, RxRing: Ring{Entries: 4},
		TxRing: Ring{Entries: 3, NeedWakeup: true}, CompletionRing: Ring{Entries: 2},
		FillWakeups: Wakeups{OK: 1},
		TxWakeups:   Wakeups{OK: 900, Again: 50, Busy: 8, LinkDown: 3, Gone: 1, Failed: 2},
	}
}

func busyPool(name string) PagePool {
	const fast, refill, slow = 960, 15, 2   // 977 handed out
	const cached, ring, full = 600, 350, 11 // 961 came home, 16 are out: 7 + 4 + 3 + 2
	return PagePool{
		Name: name, Umem: "umem0",
		AllocFast: fast, AllocSlow: slow, AllocEmpty: 2, AllocRefill: refill, AllocWaive: 1,
		RecycleCached: cached, RecycleCacheFull: 44, RecycleRing: ring, RecycleRingFull: full, RecycleReleasedRefcnt: 6,
		Inflight: 60 + 40 + 16, CacheFrames: 60, RingFrames: 40, RingSize: 1024, ProduceFull: 4,
		HandedOut: fast + refill + slow, Returned: cached + ring + full + 6,
		Bulk: Bulk{
			FlushesFull: 50, FlushesPoolChange: 2, FlushesPollEnd: 9, FlushedFrames: 50*16 + 8*15 + 3,
			Length: [17]uint64{1: 3, 15: 8, 16: 50}, Lookups: 12,
		},
	}
}

func busyWorker(index int) Worker {
	return Worker{
		Index: index, CPU: index + 2, NUMA: -1,
		Rounds: 700, Polls: 800, EmptyPolls: 90, BudgetExhausted: 11, TimeSqueezes: 2, Packets: 2000, Sleeps: 77,
		Schedules: Schedules{IRQ: 60, Timer: 17, Missed: 4, Kick: 9},
		Busy:      1500 * time.Millisecond, Idle: 250 * time.Millisecond,
		PollDuration: Durations{
			Bounds: []time.Duration{time.Microsecond, 10 * time.Microsecond, 10 * time.Millisecond},
			Counts: []uint64{5, 4, 3, 1},
			Sum:    123 * time.Microsecond,
		},
	}
}

// registry is pedantic: it finds metrics that were not described, and such as contradict their description.
func registry(t *testing.T, snapshot func() Snapshot) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	if err := Register(reg, snapshot); err != nil {
		t.Fatal(err)
	}
	return reg
}

// gather returns the forwarder's own metrics, without those of Go and the process.
func gather(t *testing.T, s Snapshot) []*dto.MetricFamily {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(NewCollector(func() Snapshot { return s }))
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}
