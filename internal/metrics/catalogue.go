// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The whole catalogue of metrics, one function for each kind of object. The help texts are what docs/METRICS.md says too.

func daemonMetrics() *family[Daemon] {
	f := newFamily[Daemon]()
	f.info("build_info", "Always 1; the labels say which build this is.", []string{"version", "revision", "goversion"},
		func(d *Daemon) []string { return []string{d.Version, d.Revision, d.GoVersion} })
	f.gauge("start_time_seconds", "When the daemon started, in Unix time.",
		func(d *Daemon) float64 { return unixSeconds(d.StartTime) })
	f.gauge("config_last_reload_success", "Whether the configuration was good when it was last loaded; the load at start counts.",
		func(d *Daemon) float64 { return flag(d.ConfigOK) })
	f.gauge("config_last_reload_timestamp_seconds", "When the configuration was last loaded, in Unix time.",
		func(d *Daemon) float64 { return unixSeconds(d.ConfigLoaded) })
	return f
}

func portMetrics() *family[Port] {
	f := newFamily[Port]("port")
	f.info("port_info", "Always 1; the labels are facts of the port.",
		[]string{"kind", "ifname", "driver", "xdp_mode", "zerocopy", "mac"},
		func(p *Port) []string { return []string{p.Kind, p.Ifname, p.Driver, p.XDPMode, p.zerocopy(), p.MAC} })
	f.gauge("port_up", "Whether the port has a carrier.", func(p *Port) float64 { return flag(p.Up) })
	f.gauge("port_admin_up", "Whether the port is set up.", func(p *Port) float64 { return flag(p.AdminUp) })
	f.gauge("port_mtu_bytes", "MTU of the port.", func(p *Port) float64 { return float64(p.MTUBytes) })
	f.add("port_xdp_packets_total", "Frames the XDP program of the port saw, by what it did with them.", []string{"action"},
		func(p *Port, put put) {
			put.value(prometheus.CounterValue, float64(p.XDP.Redirected), "redirected")
			put.value(prometheus.CounterValue, float64(p.XDP.Partner), "partner")
			put.value(prometheus.CounterValue, float64(p.XDP.Passed), "passed")
		})
	f.counter("port_xdp_orphaned_packets_total", "Frames not redirected although their queue should have had a socket.",
		func(p *Port) uint64 { return p.XDP.Orphaned })

	f.counter("tx_coalesce_timer_armed_total", "TX coalesce timers armed: fired, cancelled or still running.",
		func(p *Port) uint64 { return p.TxTimer.Armed })
	f.counter("tx_coalesce_timer_fired_total", "TX coalesce timers that expired and scheduled a poll.",
		func(p *Port) uint64 { return p.TxTimer.Fired })
	f.counter("tx_coalesce_timer_cancelled_total", "TX coalesce timers cancelled because a poll was scheduled.",
		func(p *Port) uint64 { return p.TxTimer.Cancelled })
	f.counter("tx_coalesce_timer_skipped_total", "Times the TX coalesce timer was not armed, because a poll was scheduled already.",
		func(p *Port) uint64 { return p.TxTimer.Skipped })
	f.counter("tx_coalesce_timer_syscalls_total", "System calls made to set or cancel TX coalesce timers.",
		func(p *Port) uint64 { return p.TxTimer.Syscalls })
	f.counter("tx_coalesce_frames_schedules_total", "Polls scheduled because enough sent frames were not reaped yet.",
		func(p *Port) uint64 { return p.TxTimer.FramesSchedule })
	f.add("tx_flushes_total", "Batches handed to a TX ring, by what caused it.", []string{"reason"}, func(p *Port, put put) {
		put.value(prometheus.CounterValue, float64(p.TxFlushes.BatchFull), "batch_full")
		put.value(prometheus.CounterValue, float64(p.TxFlushes.PollEnd), "poll_end")
	})
	return f
}

func queueMetrics() *family[Queue] {
	f := newFamily[Queue]("port", "queue")
	f.counter("port_receive_packets_total", "Frames taken from the port.", func(q *Queue) uint64 { return q.ReceivePackets })
	f.counter("port_receive_bytes_total", "Bytes of the frames taken from the port.", func(q *Queue) uint64 { return q.ReceiveBytes })
	f.counter("port_transmit_packets_total", "Frames given to the port.", func(q *Queue) uint64 { return q.TransmitPackets })
	f.counter("port_transmit_bytes_total", "Bytes of the frames given to the port.", func(q *Queue) uint64 { return q.TransmitBytes })
	f.add("port_receive_drops_total", "Frames dropped on the way in, by reason; the reasons are disjoint.", []string{"reason"},
		func(q *Queue, put put) { putDrops(put, q.ReceiveDrops) })
	f.add("port_transmit_drops_total", "Frames dropped on the way out, by reason; the reasons are disjoint.", []string{"reason"},
		func(q *Queue, put put) { putDrops(put, q.TransmitDrops) })

	f.gauge("xsk_zerocopy", "Whether the socket got zero-copy, as read back from it.", func(q *Queue) float64 { return flag(q.Zerocopy) })
	f.counter("xsk_rx_dropped_total", "Kernel rx_dropped: frames the socket dropped, being too long for a frame of the UMEM or having none to go into.",
		func(q *Queue) uint64 { return q.XSK.RxDropped })
	f.counter("xsk_rx_invalid_descs_total", "Kernel rx_invalid_descs: invalid descriptors in the fill ring.",
		func(q *Queue) uint64 { return q.XSK.RxInvalidDescs })
	f.counter("xsk_tx_invalid_descs_total", "Kernel tx_invalid_descs: invalid descriptors in the TX ring.",
		func(q *Queue) uint64 { return q.XSK.TxInvalidDescs })
	f.counter("xsk_rx_ring_full_total", "Kernel rx_ring_full: frames dropped because the RX ring was full.",
		func(q *Queue) uint64 { return q.XSK.RxRingFull })
	f.counter("xsk_rx_fill_ring_empty_descs_total", "Kernel rx_fill_ring_empty_descs: times no frame was in the fill ring to receive into.",
		func(q *Queue) uint64 { return q.XSK.RxFillRingEmptyDescs })
	f.counter("xsk_tx_ring_empty_descs_total", "Kernel tx_ring_empty_descs: times nothing was in the TX ring to send.",
		func(q *Queue) uint64 { return q.XSK.TxRingEmptyDescs })
	f.counter("xsk_invalid_completions_total", "Completions whose address is no frame of the UMEM.",
		func(q *Queue) uint64 { return q.InvalidCompletions })
	f.add("xsk_ring_entries", "Filled entries of the ring.", []string{"ring"}, func(q *Queue, put put) {
		put.value(prometheus.GaugeValue, float64(q.FillRing.Entries), "fill")
		put.value(prometheus.GaugeValue, float64(q.CompletionRing.Entries), "completion")
		put.value(prometheus.GaugeValue, float64(q.RxRing.Entries), "rx")
		put.value(prometheus.GaugeValue, float64(q.TxRing.Entries), "tx")
	})
	f.add("xsk_need_wakeup", "Whether the kernel asks for a wake-up of the ring.", []string{"ring"}, func(q *Queue, put put) {
		put.value(prometheus.GaugeValue, flag(q.FillRing.NeedWakeup), "fill")
		put.value(prometheus.GaugeValue, flag(q.TxRing.NeedWakeup), "tx")
	})
	f.add("xsk_wakeups_total", "System calls made to wake the kernel up for a ring, by result.", []string{"ring", "result"},
		func(q *Queue, put put) {
			putWakeups(put, "fill", &q.FillWakeups)
			putWakeups(put, "tx", &q.TxWakeups)
		})
	return f
}

func umemMetrics() *family[Umem] {
	f := newFamily[Umem]("pool")
	f.add("umem_frames", "Frames of the UMEM by where they are; the sum is constant.", []string{"state"}, func(u *Umem, put put) {
		for _, p := range u.Census.places() {
			put.value(prometheus.GaugeValue, float64(p.frames), p.state)
		}
	})
	f.gauge("umem_frame_size_bytes", "Size of a frame of the UMEM.", func(u *Umem) float64 { return float64(u.FrameSizeBytes) })
	f.gauge("umem_size_bytes", "Size of the UMEM.", func(u *Umem) float64 { return float64(u.SizeBytes) })
	return f
}

func poolMetrics() *family[PagePool] {
	f := newFamily[PagePool]("pool")
	f.counter("page_pool_alloc_fast_total", "Frames handed out of the cache.", func(p *PagePool) uint64 { return p.AllocFast })
	f.counter("page_pool_alloc_slow_total", "Frames handed out straight from the UMEM's free list.",
		func(p *PagePool) uint64 { return p.AllocSlow })
	f.counter("page_pool_alloc_empty_total", "Times the ring was empty, so that the slow path had to be taken.",
		func(p *PagePool) uint64 { return p.AllocEmpty })
	f.counter("page_pool_alloc_refill_total", "Frames handed out by a refill of the cache from the ring.",
		func(p *PagePool) uint64 { return p.AllocRefill })
	f.counter("page_pool_alloc_waive_total", "Frames taken from the ring that could not be used.",
		func(p *PagePool) uint64 { return p.AllocWaive })
	f.counter("page_pool_recycle_cached_total", "Frames returned into the cache.", func(p *PagePool) uint64 { return p.RecycleCached })
	f.counter("page_pool_recycle_cache_full_total", "Frames returned by the owner while the cache was full.",
		func(p *PagePool) uint64 { return p.RecycleCacheFull })
	f.counter("page_pool_recycle_ring_total", "Frames returned into the ring.", func(p *PagePool) uint64 { return p.RecycleRing })
	f.counter("page_pool_recycle_ring_full_total", "Frames released to the UMEM's free list because the ring was full.",
		func(p *PagePool) uint64 { return p.RecycleRingFull })
	f.counter("page_pool_recycle_released_refcnt_total", "Returns that recycled nothing because the frame had other holders.",
		func(p *PagePool) uint64 { return p.RecycleReleasedRefcnt })
	f.gauge("page_pool_inflight_frames", "Frames the pool has taken from the UMEM and not given back.",
		func(p *PagePool) float64 { return float64(p.Inflight) })
	f.gauge("page_pool_cache_frames", "Frames in the cache.", func(p *PagePool) float64 { return float64(p.CacheFrames) })
	f.gauge("page_pool_ring_frames", "Frames in the ring.", func(p *PagePool) float64 { return float64(p.RingFrames) })
	f.gauge("page_pool_ring_size", "Most frames the ring can hold.", func(p *PagePool) float64 { return float64(p.RingSize) })
	f.counter("ptr_ring_produce_full_total", "Times a producer found the ring full.", func(p *PagePool) uint64 { return p.ProduceFull })

	f.add("page_pool_bulk_flushes_total", "Bulk returns, by what ended the bulk.", []string{"reason"}, func(p *PagePool, put put) {
		put.value(prometheus.CounterValue, float64(p.Bulk.FlushesFull), "full")
		put.value(prometheus.CounterValue, float64(p.Bulk.FlushesPoolChange), "pool_change")
		put.value(prometheus.CounterValue, float64(p.Bulk.FlushesPollEnd), "poll_end")
	})
	f.counter("page_pool_bulk_flushed_frames_total", "Frames returned in bulks.", func(p *PagePool) uint64 { return p.Bulk.FlushedFrames })
	f.counter("page_pool_bulk_lookups_total", "Searches for the pool of a frame.", func(p *PagePool) uint64 { return p.Bulk.Lookups })
	f.counter("page_pool_bulk_unknown_frames_total", "Frames whose pool was not found, so that they are lost; must stay 0.",
		func(p *PagePool) uint64 { return p.Bulk.Unknown })
	f.add("page_pool_bulk_length_frames", "Length of the bulks.", nil, func(p *PagePool, put put) { putLengths(put, &p.Bulk) })
	return f
}

func workerMetrics() *family[Worker] {
	f := newFamily[Worker]("worker")
	f.info("worker_info", "Always 1; the labels say where the worker runs.", []string{"cpu", "numa"},
		func(w *Worker) []string { return []string{known(w.CPU), known(w.NUMA)} })
	f.counter("napi_rounds_total", "Rounds over the poll list.", func(w *Worker) uint64 { return w.Rounds })
	f.counter("napi_polls_total", "Polls.", func(w *Worker) uint64 { return w.Polls })
	f.counter("napi_empty_polls_total", "Polls that found nothing to do.", func(w *Worker) uint64 { return w.EmptyPolls })
	f.counter("napi_poll_budget_exhausted_total", "Polls that used their whole weight.", func(w *Worker) uint64 { return w.BudgetExhausted })
	f.counter("napi_time_squeezes_total", "Rounds that ended at their packet or time limit with work left.",
		func(w *Worker) uint64 { return w.TimeSqueezes })
	f.counter("napi_packets_total", "Packets received in polls.", func(w *Worker) uint64 { return w.Packets })
	f.counter("napi_sleeps_total", "Times the worker went to sleep.", func(w *Worker) uint64 { return w.Sleeps })
	f.add("napi_schedules_total", "Polls scheduled, by what did it.", []string{"source"}, func(w *Worker, put put) {
		put.value(prometheus.CounterValue, float64(w.Schedules.IRQ), "irq")
		put.value(prometheus.CounterValue, float64(w.Schedules.Timer), "timer")
		put.value(prometheus.CounterValue, float64(w.Schedules.Missed), "missed")
		put.value(prometheus.CounterValue, float64(w.Schedules.Kick), "kick")
	})
	f.add("napi_busy_seconds_total", "Time spent in polls that had work.", nil,
		func(w *Worker, put put) { put.value(prometheus.CounterValue, w.Busy.Seconds()) })
	f.add("napi_idle_seconds_total", "Time spent asleep or in polls that had no work.", nil,
		func(w *Worker, put put) { put.value(prometheus.CounterValue, w.Idle.Seconds()) })
	f.add("napi_poll_duration_seconds", "Duration of polls; one in 64 is measured.", nil,
		func(w *Worker, put put) { putDurations(put, &w.PollDuration) })
	return f
}

func putDrops(put put, drops []Drop) {
	for _, d := range drops {
		put.value(prometheus.CounterValue, float64(d.Packets), d.Reason)
	}
}

func putWakeups(put put, ring string, w *Wakeups) {
	put.value(prometheus.CounterValue, float64(w.OK), ring, "ok")
	put.value(prometheus.CounterValue, float64(w.Again), ring, "again")
	put.value(prometheus.CounterValue, float64(w.Busy), ring, "busy")
	put.value(prometheus.CounterValue, float64(w.LinkDown), ring, "link_down")
	put.value(prometheus.CounterValue, float64(w.Gone), ring, "gone")
	put.value(prometheus.CounterValue, float64(w.Failed), ring, "failed")
}

// putLengths emits the bulk lengths in buckets that part a lone frame, a short bulk, a good one and a full one.
func putLengths(put put, b *Bulk) {
	atMost := map[float64]uint64{1: 0, 2: 0, 4: 0, 8: 0, 15: 0}
	var count, sum uint64
	for length, n := range b.Length {
		count += n
		sum += uint64(length) * n
		if _, bound := atMost[float64(length)]; bound {
			atMost[float64(length)] = count
		}
	}
	put.histogram(count, float64(sum), atMost)
}

// putDurations emits a histogram of times. One which does not fit its own bounds is an error and not a wrong answer.
func putDurations(put put, d *Durations) {
	if len(d.Counts) != len(d.Bounds)+1 && len(d.Counts)+len(d.Bounds) > 0 {
		put.emit(nil, fmt.Errorf("%d counts for %d bounds", len(d.Counts), len(d.Bounds)))
		return
	}
	atMost := make(map[float64]uint64, len(d.Bounds))
	var count uint64
	for i, n := range d.Counts {
		count += n
		if i < len(d.Bounds) {
			atMost[d.Bounds[i].Seconds()] = count
		}
	}
	put.histogram(count, d.Sum.Seconds(), atMost)
}

// zerocopy is what the queues of the port got: "yes", "no", "mixed", or "" while it has none.
func (p *Port) zerocopy() string {
	var with int
	for i := range p.Queues {
		if p.Queues[i].Zerocopy {
			with++
		}
	}
	switch {
	case len(p.Queues) == 0:
		return ""
	case with == 0:
		return "no"
	case with == len(p.Queues):
		return "yes"
	}
	return "mixed"
}

// known is the number, or nothing where it is -1 because it is not known.
func known(n int) string {
	if n < 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// unixSeconds is 0 for the zero time.
func unixSeconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixNano()) / float64(time.Second)
}
