// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"
	"slices"
	"testing"

	"github.com/asavie/xdp"

	"github.com/xskfwd/xskfwd/bulk"
	"github.com/xskfwd/xskfwd/internal/xsk/xsktest"
	"github.com/xskfwd/xskfwd/napi"
)

// benchRig is a forwarder whose fakes cost little and allocate nothing. The TX
// rings want no wake-up, so that the fake's sending is not inside of a poll.
func benchRig(t testing.TB, cfg rigConfig) *rig {
	cfg.kernel = xsktest.Config{FillEntries: 2048, CompletionEntries: 2048, RxEntries: 2048, TxEntries: 2048, Discard: true}
	cfg.timer = defaultTimer()
	cfg.frames = 4096 * 2
	r := newRig(t, cfg)
	for _, u := range r.all {
		u.k.SetNeedWakeup(false, false)
	}
	return r
}

// medianOf keeps what single batches took and reports the median for a packet:
// on a machine that others use as well a mean says more about them.
type medianOf struct{ nanos []int64 }

func newMedian() *medianOf { return &medianOf{make([]int64, 0, 1<<16)} }

func (m *medianOf) add(nanos int64) {
	if len(m.nanos) < cap(m.nanos) {
		m.nanos = append(m.nanos, nanos)
	}
}

func (m *medianOf) report(b *testing.B) {
	slices.Sort(m.nanos)
	b.ReportMetric(float64(m.nanos[len(m.nanos)/2])/Weight, "ns/packet")
}

// turn is one batch on its way: received by in, sent by out, completed. Only
// what is between the two looks at the clock is the forwarder.
func turn(in, out *unit, batch [][]byte, clock napi.Clock) (nanos int64) {
	in.k.Deliver(batch...)
	start := clock()
	in.q.Poll(Weight)
	nanos = clock() - start
	out.k.Transmit(Weight)
	start = clock()
	out.q.Poll(Weight)
	return nanos + clock() - start
}

// BenchmarkPath is what the forwarder adds to a packet, RX to completion, in
// batches of 64. The fake kernel's own work is between the looks at the clock;
// the ns/op column has it, ns/packet has not.
func BenchmarkPath(b *testing.B) {
	for _, workers := range []int{1, 2} {
		for _, size := range []int{1, 16} {
			for _, rule := range []bulk.Rule{bulk.Partition, bulk.Change} {
				name := fmt.Sprintf("%s/bulk-%d/%s", [...]string{"", "same-worker", "foreign-worker"}[workers], size, ruleName(rule))
				b.Run(name, func(b *testing.B) {
					r := benchRig(b, rigConfig{workers: workers, bulkSize: size, rule: rule})
					benchPath(b, r)
				})
			}
		}
	}
}

func ruleName(r bulk.Rule) string {
	if r == bulk.Change {
		return "change"
	}
	return "partition"
}

func benchPath(b *testing.B, r *rig) {
	in, out := r.all[0], r.all[1]
	batch, clock := frames(Weight), napi.Monotonic()
	for range 50 {
		turn(in, out, batch, clock)
	}
	b.ReportAllocs()
	median := newMedian()
	for b.Loop() {
		median.add(turn(in, out, batch, clock))
	}
	median.report(b)
	if got := out.k.SentCount(); got != uint64((b.N+50)*Weight) {
		b.Fatalf("sent %d of %d", got, (b.N+50)*Weight)
	}
}

// BenchmarkPathReference moves the same batches over the same rings with
// nothing else done to them: no pools, no counters, no verdict, one free list.
func BenchmarkPathReference(b *testing.B) {
	r := benchRig(b, rigConfig{})
	in, out := r.all[0], r.all[1]
	batch, clock := frames(Weight), napi.Monotonic()
	var descs [Weight]xdp.Desc
	free := make([]uint64, 0, 4096)
	move := func() {
		s := in.k.Socket
		idx, n := s.Rx.Peek(Weight)
		for i := range n {
			descs[i] = s.Rx.At(idx + i)
		}
		s.Rx.Release(n)
		at, n := out.k.Socket.Tx.Reserve(n)
		for i := range n {
			out.k.Socket.Tx.Set(at+i, descs[i])
		}
		out.k.Socket.Tx.Submit(n)
	}
	home := func() {
		c := out.k.Socket.Completion
		idx, n := c.Peek(c.Entries())
		for i := range n {
			free = append(free, c.At(idx+i))
		}
		c.Release(n)
		at, n := in.k.Socket.Fill.Reserve(uint32(len(free)))
		for i := range n {
			in.k.Socket.Fill.Set(at+i, free[len(free)-1-int(i)])
		}
		free = free[:len(free)-int(n)]
		in.k.Socket.Fill.Submit(n)
	}
	median := newMedian()
	b.ReportAllocs()
	for b.Loop() {
		in.k.Deliver(batch...)
		start := clock()
		move()
		nanos := clock() - start
		out.k.Transmit(Weight)
		start = clock()
		home()
		median.add(nanos + clock() - start)
	}
	median.report(b)
}

// BenchmarkPathDropped is a batch of which nothing leaves.
func BenchmarkPathDropped(b *testing.B) {
	r := benchRig(b, rigConfig{})
	in, out := r.all[0], r.all[1]
	out.maxBytes.Store(MaxFrameBytes(10))
	batch, clock := frames(Weight), napi.Monotonic()
	median := newMedian()
	b.ReportAllocs()
	for b.Loop() {
		in.k.Deliver(batch...)
		start := clock()
		in.q.Poll(Weight)
		median.add(clock() - start)
	}
	median.report(b)
}

// BenchmarkEmptyPoll is a poll that finds nothing.
func BenchmarkEmptyPoll(b *testing.B) {
	r := benchRig(b, rigConfig{})
	b.ReportAllocs()
	for b.Loop() {
		r.all[0].q.Poll(Weight)
	}
}

// BenchmarkPublish is a cut of two queues, once a millisecond and worker.
func BenchmarkPublish(b *testing.B) {
	r := benchRig(b, rigConfig{})
	b.ReportAllocs()
	for b.Loop() {
		r.workers[0].publish()
	}
}
