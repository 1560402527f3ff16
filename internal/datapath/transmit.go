// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"sync"

	"github.com/asavie/xdp"

	"github.com/xskfwd/xskfwd/bulk"
	"github.com/xskfwd/xskfwd/internal/xsk"
	"github.com/xskfwd/xskfwd/napi"
)

// TxQueue is a TX ring and what its transmitters share. Its completions are
// reaped by the Queue it belongs to and by nobody else.
type TxQueue struct {
	sock *xsk.Socket
	// napi is the owner's, which reaps the ring. Set before the workers run.
	napi *napi.Napi
	// timer counts the frames handed over that have not been reaped, and
	// schedules the Napi that reaps them. Safe for all transmitters.
	timer *napi.TxTimer

	out outgoing // marked under mu if shared, unmarked by the owner

	// shared says that a worker other than the owner transmits here. Fixed
	// before the workers run.
	shared bool
	// mu guards the producer's side of the ring: once per batch, and only if
	// shared.
	mu sync.Mutex

	// down is set when the link is down, or the device gone, and cleared by the
	// first kick that gets further. While it is set batches are dropped, not
	// parked in the ring: frames must not be sent minutes late, and a slow port
	// must not hold the pages of the others. Guarded by mu if shared.
	down bool
}

// Share makes transmitters take the lock. Before the workers run only.
func (t *TxQueue) Share() { t.shared = true }

func (t *TxQueue) lock() {
	if t.shared {
		t.mu.Lock()
	}
}

func (t *TxQueue) unlock() {
	if t.shared {
		t.mu.Unlock()
	}
}

// transmit hands the batch to the egress ring and kicks it. What the ring does
// not take is dropped, with a reason, and not waited for: the RX ring is where
// a burst may wait, a frame that has been taken off it has to go somewhere.
//
// Reasons: DropTxRingFull, DropLinkDown. What the kernel takes and does not send is
// counted in KickCounters.Refused.
func (q *Queue) transmit(frames []xdp.Desc, done *bulk.FrameBulk) {
	if len(frames) == 0 {
		return
	}
	t := q.out.tx
	t.lock()
	sent, state, why := q.hand(t, frames)
	t.unlock()
	for _, f := range frames[sent:] {
		q.drop(f, why, done)
	}
	if sent == 0 {
		return
	}
	t.timer.Sent(sent)
	if state != xsk.Drained {
		// The owner reads completions, which may be all that is in the way, and
		// kicks again. It also waits for what no completion brings.
		t.napi.Schedule(napi.SourceKick)
	}
	if sent == Weight {
		q.c.TxFull++
	} else {
		q.c.TxPartial++
	}
}

// hand puts the batch on the ring and kicks, and once more if the first kick
// made room. It returns how many frames the ring took, how the last kick ended,
// and why the other frames were not taken.
func (q *Queue) hand(t *TxQueue, frames []xdp.Desc) (sent int, state xsk.KickState, why DropReason) {
	if t.down {
		if state = t.kick(&q.c.Kicks); t.down {
			return 0, state, DropLinkDown
		}
	}
	sent = q.submit(t, frames)
	state = t.kick(&q.c.Kicks)
	if sent < len(frames) {
		if more := q.submit(t, frames[sent:]); more > 0 {
			sent += more
			state = t.kick(&q.c.Kicks)
		}
	}
	return sent, state, DropTxRingFull
}

// submit puts as many frames on the ring as it has room for.
func (q *Queue) submit(t *TxQueue, frames []xdp.Desc) int {
	ring := t.sock.Tx
	idx, n := ring.Reserve(uint32(len(frames)))
	bytes := uint64(0)
	for i := range frames[:n] {
		ring.Set(idx+uint32(i), frames[i])
		t.out.mark(frames[i].Addr)
		bytes += uint64(frames[i].Len)
	}
	if t.shared {
		// Ordering: marks before the count; pairs with the load in clean.
		t.out.handed.Add(1)
	}
	ring.Submit(n)
	q.c.TxPackets += uint64(n)
	q.c.TxBytes += bytes
	return int(n)
}

// kick makes the kernel look at the ring, if it wants to be told, and counts
// what came of it.
func (t *TxQueue) kick(k *KickCounters) xsk.KickState {
	if !t.sock.Tx.NeedWakeup() {
		k.Unneeded++
		t.down = false
		return xsk.Drained
	}
	r := t.sock.KickTx()
	k.count(r)
	t.down = r.State == xsk.LinkDown || r.State == xsk.Gone
	return r.State
}

// retry kicks what earlier kicks left in this queue's own TX ring: the link was
// down, or the kernel wanted completions reaped first. If there are completions
// to be reaped, it polls again; else the timer makes sure that there is a next
// poll while frames are unreaped.
func (q *Queue) retry() {
	t := q.tx
	if t.sock.Tx.Len() == 0 {
		return
	}
	state := xsk.Drained
	t.lock()
	if t.sock.Tx.Len() > 0 { // not what another worker was about to kick itself
		state = t.kick(&q.c.Retries)
	}
	t.unlock()
	if state == xsk.Again && q.sock.Completion.Len() > 0 {
		q.napi.Schedule(napi.SourceKick)
	}
}
