// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"sync/atomic"

	"github.com/asavie/xdp"

	"github.com/xskfwd/xskfwd/bulk"
	"github.com/xskfwd/xskfwd/internal/xsk"
	"github.com/xskfwd/xskfwd/napi"
	"github.com/xskfwd/xskfwd/pagepool"
)

// Weight is how many frames one poll may receive: NAPI_POLL_WEIGHT of the
// kernel. One poll is one TX batch, so a smaller weight costs a kick for fewer
// frames, and a larger one lets a queue hold its worker for longer.
const Weight = 64

// QueueConfig is what a Queue is made of. The queue takes none of it over: who
// opened the socket closes it, after the worker has stopped.
type QueueConfig struct {
	Port   string // name of the port, for messages
	Number int    // device queue number
	Umem   *xsk.Umem
	Socket *xsk.Socket
	Pool   *pagepool.PagePool // owner: the worker that polls this queue
	Mems   *bulk.MemTable
	// FillTarget is the most pages this queue keeps posted: in the fill ring,
	// in the driver and in the RX ring together.
	FillTarget uint32
	// Posted is how many pages of Pool are on the fill ring already.
	Posted   uint64
	BulkSize int
	BulkRule bulk.Rule
}

// Queue serves RX, fill, TX and completion of one (port, queue) and is the
// Poller of its Napi.
//
// Owner: the worker that polls it, for everything but Tx, which other workers
// may transmit on.
type Queue struct {
	sock  *xsk.Socket
	umem  *xsk.Umem
	pool  *pagepool.PagePool
	mems  *bulk.MemTable
	napi  *napi.Napi
	tx    *TxQueue // this queue's TX ring; completions are reaped here
	out   egress   // where received frames go
	stats *bulk.Stats

	memID      pagepool.MemID
	fillTarget uint32
	bulkSize   int
	bulkRule   bulk.Rule
	owner      int // worker number

	again   again
	untimed bool // the TX coalesce timer is off
	// starved says that little is posted, for want of pages.
	starved bool

	frames  [Weight]xdp.Desc      // scratch of one poll
	touched byte                  // keeps Touch from being optimised away
	pages   [Weight]pagepool.Page // scratch of refill

	c QueueCounters

	port   string
	number int
}

// egress is where a Queue's frames leave: a TX ring and the longest frame its
// port takes.
type egress struct {
	tx       *TxQueue
	maxBytes *atomic.Uint32 // MaxFrameBytes of the egress port; written by the control plane
	// copies says that sendto reads the frames, in copy mode. A zero-copy wire
	// needs none of their bytes on this CPU.
	copies bool
}

// NewQueue makes a queue; Connect and Worker.Add complete it.
func NewQueue(cfg QueueConfig) *Queue {
	q := &Queue{
		sock: cfg.Socket, umem: cfg.Umem, pool: cfg.Pool, mems: cfg.Mems,
		memID: cfg.Pool.ID(), fillTarget: cfg.FillTarget,
		bulkSize: cfg.BulkSize, bulkRule: cfg.BulkRule, owner: cfg.Pool.Owner(),
		port: cfg.Port, number: cfg.Number,
	}
	q.tx = &TxQueue{sock: cfg.Socket}
	q.tx.out.init(cfg.Umem)
	q.c.Posted = cfg.Posted
	return q
}

// Connect makes tx the TX ring on which frames received here leave. maxBytes
// is the egress port's limit, see MaxFrameBytes. Before the worker runs only.
func (q *Queue) Connect(tx *TxQueue, maxBytes *atomic.Uint32) {
	q.out = egress{tx: tx, maxBytes: maxBytes, copies: !tx.sock.Zerocopy()}
}

// Tx is the queue's own TX ring.
func (q *Queue) Tx() *TxQueue { return q.tx }

// Napi is the queue's poll instance, nil before Worker.Add.
func (q *Queue) Napi() *napi.Napi { return q.napi }

// Poll is one turn of the queue: completions first, so that their pages can be
// posted again; refill before receive, since fill and RX both empty is a
// deadlock; and everything deferred is flushed before it returns, so that a
// lone frame waits for nobody.
func (q *Queue) Poll(budget int) int {
	var done bulk.FrameBulk
	done.Init(q.mems, q.owner, q.bulkSize, q.bulkRule, q.stats)

	q.clean(&done)
	short := !q.refill()
	frames := q.receive(budget)
	received := len(frames)
	frames = q.forward(frames, &done)
	q.transmit(frames, &done)
	done.Flush()
	q.retry()
	q.leave(short)
	return received
}

// Pending reports whether a poll would find a received frame, or a page for a
// port that waits for one. Completions do not count: the coalesce timer brings
// them home.
func (q *Queue) Pending() bool {
	return q.sock.Rx.Len() > 0 || q.starved && q.pool.OwnerCounts().Cache > 0
}
