// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"sync"

	"github.com/xskfwd/xskfwd/bulk"
	"github.com/xskfwd/xskfwd/internal/xsk"
	"github.com/xskfwd/xskfwd/napi"
	"github.com/xskfwd/xskfwd/pagepool"
)

// QueueCut is a Queue between two polls: what it has counted, and where its
// pool's pages are as far as its worker knows.
type QueueCut struct {
	Port   string
	Number int
	Pool   *pagepool.PagePool
	// Tx is the queue's own TX ring, Egress the one its frames leave by.
	Tx, Egress *TxQueue

	Counters QueueCounters
	// Bulk is what this queue's FrameBulks did; Bulk.ByMem says whose pages
	// they returned.
	Bulk bulk.Stats
	// Owner's side of the pool, exact at this moment.
	PoolCounts pagepool.OwnerCounts
	// Filled entries of the four rings. The kernel moves them all the time;
	// these are looks, not counts.
	Rings xsk.RingEntries
	Needs RingNeeds
	Timer napi.TxTimerStats
}

// RingNeeds are the need-wakeup flags of the two rings that have one.
type RingNeeds struct{ Fill, Tx bool }

// WorkerCut is what one worker publishes: consistent in itself, because the
// worker makes it between two polls, when it holds no frame.
type WorkerCut struct {
	Loop      napi.LoopStats
	PollTimes PollTimes
	Queues    []QueueCut
}

// published is the cut a worker keeps for readers.
type published struct {
	mu  sync.Mutex // held for a copy only
	cut WorkerCut
}

// publish copies live into the published cut, unless a reader is copying it:
// then the worker goes on and publishes next time. It reports whether it did.
func (p *published) publish(fill func(*WorkerCut)) bool {
	if !p.mu.TryLock() {
		return false
	}
	fill(&p.cut)
	p.mu.Unlock()
	return true
}

// publishLast is publish for when there is no next time: it waits for a reader.
func (p *published) publishLast(fill func(*WorkerCut)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fill(&p.cut)
}

// read copies the published cut into dst, reusing its slices.
func (p *published) read(dst *WorkerCut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	dst.Loop, dst.PollTimes = p.cut.Loop, p.cut.PollTimes
	if len(dst.Queues) != len(p.cut.Queues) {
		dst.Queues = make([]QueueCut, len(p.cut.Queues))
	}
	for i := range p.cut.Queues {
		copyQueueCut(&dst.Queues[i], &p.cut.Queues[i])
	}
}

// copyQueueCut copies all of src and shares no memory with it.
func copyQueueCut(dst, src *QueueCut) {
	byMem := append(dst.Bulk.ByMem[:0], src.Bulk.ByMem...)
	*dst = *src
	dst.Bulk.ByMem = byMem
}

// cut fills c with the state of the queue. Owner: its worker, between polls.
func (q *Queue) cut(c *QueueCut) {
	c.Port, c.Number, c.Pool = q.port, q.number, q.pool
	c.Tx, c.Egress = q.tx, q.out.tx
	c.Counters = q.c
	byMem := append(c.Bulk.ByMem[:0], q.stats.ByMem...)
	c.Bulk = *q.stats
	c.Bulk.ByMem = byMem
	q.pool.Publish()
	c.PoolCounts = q.pool.OwnerCounts()
	// Not Socket.RingEntries, whose lock a scrape may hold.
	c.Rings = xsk.RingEntries{
		Fill: q.sock.Fill.Len(), Completion: q.sock.Completion.Len(),
		Rx: q.sock.Rx.Len(), Tx: q.sock.Tx.Len(),
	}
	c.Needs = RingNeeds{Fill: q.sock.Fill.NeedWakeup(), Tx: q.sock.Tx.NeedWakeup()}
	c.Timer = q.tx.timer.Stats()
}
