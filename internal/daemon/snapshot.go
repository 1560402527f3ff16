// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"time"

	"github.com/xskfwd/xskfwd/bpf"
	"github.com/xskfwd/xskfwd/bulk"
	"github.com/xskfwd/xskfwd/internal/datapath"
	"github.com/xskfwd/xskfwd/internal/metrics"
	"github.com/xskfwd/xskfwd/napi"
)

// snapshot turns what the workers have published into what is exported. Called
// with the observer's lock held, so the plane is not taken down meanwhile.
func (d *daemon) snapshot(daemon metrics.Daemon) metrics.Snapshot {
	s := metrics.Snapshot{Daemon: daemon}
	var cuts []datapath.QueueCut
	for _, w := range d.plane.workers {
		var c datapath.WorkerCut
		w.Cut(&c)
		cuts = append(cuts, c.Queues...)
		s.Workers = append(s.Workers, workerSnapshot(w, &c))
	}
	for _, p := range d.ports {
		s.Ports = append(s.Ports, d.portSnapshot(p, cuts))
	}
	s.Umems = append(s.Umems, d.plane.umemSnapshot(cuts))
	for i := range cuts {
		s.Pools = append(s.Pools, poolSnapshot(i, cuts))
	}
	return s
}

// umemSnapshot is the census of all pools together, and of the free list. What a
// worker has taken from the free list or given back since it published is in
// neither, or in both: it counts as held, and a frame that stays there is lost.
func (p *plane) umemSnapshot(cuts []datapath.QueueCut) metrics.Umem {
	u := metrics.Umem{
		Name: umemName, Frames: uint64(p.umem.Frames()),
		FrameSizeBytes: uint64(p.umem.FrameSize()), SizeBytes: p.umem.Size(),
	}
	pooled := int64(0)
	for i := range cuts {
		c := datapath.TakeCensus(i, cuts)
		pooled += c.Sum()
		u.Census.Cache += c.Cache
		u.Census.Ring += c.Ring
		u.Census.Fill += c.Fill
		u.Census.Rx += c.Rx
		u.Census.Tx += c.Tx
		u.Census.Completion += c.Done
		u.Census.Held += c.Held
	}
	u.Census.Free = int64(p.umem.FreeFrames())
	u.Census.Held += int64(u.Frames) - pooled - u.Census.Free
	return u
}

// umemName is the name of the one UMEM all ports share.
const umemName = "umem0"

// portSnapshot adds up a port. Frames are sent by the queue that received them,
// so what left through this port is counted in the cuts of its partner.
func (d *daemon) portSnapshot(p *port, cuts []datapath.QueueCut) metrics.Port {
	s := metrics.Port{
		Name: p.name, Partner: p.partner.name, Kind: "nic",
		Ifname: p.facts.ifname, Driver: p.facts.driver, MAC: p.facts.mac.String(),
		Up: p.facts.up, AdminUp: p.facts.adminUp, MTUBytes: p.facts.mtu,
	}
	if h := d.hookOf(p); h != nil {
		var mode bpf.Mode
		mode, s.XDP = h.statistics()
		s.XDPMode = string(mode)
	}
	for _, u := range p.units {
		for i := range cuts {
			if cuts[i].Pool == u.pool {
				s.Queues = append(s.Queues, u.snapshot(&cuts[i], cuts))
				addTimer(&s.TxTimer, &cuts[i].Timer)
				s.TxFlushes.BatchFull += cuts[i].Counters.TxFull
				s.TxFlushes.PollEnd += cuts[i].Counters.TxPartial
			}
		}
	}
	return s
}

// snapshot is one queue: what it received, and what others sent through it.
func (u *unit) snapshot(own *datapath.QueueCut, cuts []datapath.QueueCut) metrics.Queue {
	c := &own.Counters
	q := metrics.Queue{
		Index: u.number, ReceivePackets: c.RxPackets, ReceiveBytes: c.RxBytes,
		Zerocopy: u.sock.Zerocopy(), XSK: u.xskStatistics(), InvalidCompletions: c.BadCompletions,
		FillRing:       metrics.Ring{Entries: own.Rings.Fill, NeedWakeup: own.Needs.Fill},
		CompletionRing: metrics.Ring{Entries: own.Rings.Completion},
		RxRing:         metrics.Ring{Entries: own.Rings.Rx},
		TxRing:         metrics.Ring{Entries: own.Rings.Tx, NeedWakeup: own.Needs.Tx},
		FillWakeups:    metrics.Wakeups{OK: c.FillKicks},
	}
	q.ReceiveDrops = append(unreceived(q.XSK, q.Zerocopy),
		metrics.Drop{Reason: metrics.ReasonRunt, Packets: c.Drops[datapath.DropRunt]},
		metrics.Drop{Reason: metrics.ReasonUnset, Packets: c.Drops[datapath.DropUnset]})
	u.addEgress(&q, own, cuts)
	return q
}

// addEgress adds what the queues that transmit here have done.
func (u *unit) addEgress(q *metrics.Queue, own *datapath.QueueCut, cuts []datapath.QueueCut) {
	var full, mtu, down uint64
	kicks := own.Counters.Retries
	for i := range cuts {
		if cuts[i].Egress != own.Tx {
			continue
		}
		c := &cuts[i].Counters
		q.TransmitPackets += c.TxPackets
		q.TransmitBytes += c.TxBytes
		full += c.Drops[datapath.DropTxRingFull]
		mtu += c.Drops[datapath.DropTooLong]
		down += c.Drops[datapath.DropLinkDown]
		kicks.Add(&c.Kicks)
	}
	lost := kicks.Refused + q.XSK.TxInvalidDescs
	q.TransmitPackets -= min(lost, q.TransmitPackets)
	q.TxWakeups = wakeups(&kicks)
	q.TransmitDrops = []metrics.Drop{
		{Reason: metrics.ReasonRingFull, Packets: full},
		{Reason: metrics.ReasonMTU, Packets: mtu},
		{Reason: metrics.ReasonLinkDown, Packets: down},
		{Reason: metrics.ReasonRefused, Packets: kicks.Refused},
		{Reason: metrics.ReasonInvalidDesc, Packets: q.XSK.TxInvalidDescs},
	}
}

// unreceived are the frames that the kernel had for the socket and dropped. In
// copy mode rx_dropped counts both those that found no page on the fill ring and
// those too long for a chunk; a zero-copy driver reports the former itself.
func unreceived(x metrics.XSKStatistics, zerocopy bool) []metrics.Drop {
	var noFrame uint64
	if !zerocopy {
		noFrame = min(x.RxFillRingEmptyDescs, x.RxDropped)
	}
	return []metrics.Drop{
		{Reason: metrics.ReasonNoFrame, Packets: noFrame, Unreceived: true},
		{Reason: metrics.ReasonTooLong, Packets: x.RxDropped - noFrame, Unreceived: true},
		{Reason: metrics.ReasonRingFull, Packets: x.RxRingFull, Unreceived: true},
	}
}

func wakeups(k *datapath.KickCounters) metrics.Wakeups {
	w := metrics.Wakeups{Again: k.Again, Busy: k.Refused, LinkDown: k.LinkDown, Gone: k.Gone, Failed: k.Failed}
	w.OK = k.Calls - min(k.Calls, w.Again+w.Busy+w.LinkDown+w.Gone+w.Failed)
	return w
}

// xskStatistics reads the socket's counters into the account of this unit.
func (u *unit) xskStatistics() metrics.XSKStatistics {
	if st, err := u.sock.Statistics(); err == nil {
		u.life.Observe(metrics.XSKStatistics{
			RxDropped: st.Rx_dropped, RxInvalidDescs: st.Rx_invalid_descs, TxInvalidDescs: st.Tx_invalid_descs,
			RxRingFull: st.Rx_ring_full, RxFillRingEmptyDescs: st.Rx_fill_ring_empty_descs, TxRingEmptyDescs: st.Tx_ring_empty_descs,
		})
	}
	return u.xsk.Total()
}

func addTimer(to *metrics.TxTimer, t *napi.TxTimerStats) {
	to.Armed += t.Armed
	to.Fired += t.Fired
	to.Cancelled += t.Cancelled
	to.Skipped += t.Skipped
	to.Syscalls += t.Syscalls
	to.FramesSchedule += t.ByFrames
	if t.Running {
		to.Running++
	}
}

// poolSnapshot is the pool of queue at, and what that queue's poll returned.
func poolSnapshot(at int, cuts []datapath.QueueCut) metrics.PagePool {
	c := &cuts[at]
	st := c.Pool.Stats()
	p := metrics.PagePool{
		Name: c.Pool.Name(), Umem: umemName,
		AllocFast: st.AllocFast, AllocSlow: st.AllocSlow, AllocEmpty: st.AllocEmpty,
		AllocRefill: st.AllocRefill, AllocWaive: st.AllocWaive,
		RecycleCached: st.RecycleCached, RecycleCacheFull: st.RecycleCacheFull, RecycleRing: st.RecycleRing,
		RecycleRingFull: st.RecycleRingFull, RecycleReleasedRefcnt: st.RecycleReleasedRefcnt,
		Inflight: int64(int32(st.HoldCnt - st.ReleaseCnt)), CacheFrames: uint64(st.CacheFrames),
		RingFrames: uint64(st.RingFrames), RingSize: uint64(st.RingSize), ProduceFull: st.ProduceFull,
		HandedOut: c.Counters.Posted, Bulk: bulkSnapshot(&c.Bulk),
	}
	id := int(c.Pool.ID())
	for i := range cuts {
		if id < len(cuts[i].Bulk.ByMem) {
			r := cuts[i].Bulk.ByMem[id]
			p.Returned += r.Cached + r.Ring + r.Released + r.Shared
		}
	}
	return p
}

func bulkSnapshot(b *bulk.Stats) metrics.Bulk {
	return metrics.Bulk{
		FlushesFull: b.Flushes[bulk.Full], FlushesPoolChange: b.Flushes[bulk.PoolChange], FlushesPollEnd: b.Flushes[bulk.EndOfPoll],
		FlushedFrames: b.Flushed[bulk.Full] + b.Flushed[bulk.PoolChange] + b.Flushed[bulk.EndOfPoll], Length: b.Length, Lookups: b.Lookups, Unknown: b.Unknown,
	}
}

func workerSnapshot(w *datapath.Worker, c *datapath.WorkerCut) metrics.Worker {
	l := &c.Loop
	return metrics.Worker{
		Index: w.ID(), CPU: w.CPU(), NUMA: -1,
		Rounds: l.Rounds, Polls: l.Polls, EmptyPolls: l.EmptyPolls, BudgetExhausted: l.Exhausted,
		TimeSqueezes: l.TimeSqueeze, Packets: l.Packets, Sleeps: l.Sleeps,
		Schedules: metrics.Schedules{
			IRQ: l.Schedules[napi.SourceIRQ], Timer: l.Schedules[napi.SourceTimer],
			Missed: l.Schedules[napi.SourceMissed], Kick: l.Schedules[napi.SourceKick],
		},
		Busy: time.Duration(l.BusyNanos), Idle: time.Duration(l.IdleNanos),
		PollDuration: metrics.Durations{Bounds: datapath.PollTimeBounds(), Counts: c.PollTimes.Counts[:], Sum: c.PollTimes.Sum},
	}
}
