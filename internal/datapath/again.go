// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"time"

	"github.com/xskfwd/xskfwd/internal/epoll"
	"github.com/xskfwd/xskfwd/napi"
)

const (
	// againDelay is how soon a queue polls again that had to leave something
	// undone. Smaller: more polls that find nothing has changed. Larger: a port
	// whose pages are late receives nothing for longer.
	againDelay = time.Millisecond
	// againMax is what the delay doubles up to while nothing changes: ten looks a
	// second cost nothing, and nobody notices a tenth of a second after a stall.
	againMax = napi.MaxTxDelay
)

// again makes a queue poll again when no event will. There are two cases.
//
// Little is posted, because the pool has no page: what is left may be too little
// for the next burst, or nothing, and then the kernel can deliver nothing, so
// that nothing wakes the worker when pages come home.
//
// Frames are left on the queue's own TX ring, and the coalesce timer is off.
type again struct {
	timer *epoll.Timer
	wait  time.Duration // of the next start, doubled while nothing changes
	seen  uint64        // pages posted and completed by the end of the last poll
}

// start arms the timer. If the kernel refuses, the next event has to do.
func (a *again) start() {
	if a.timer.Start(a.wait) == nil {
		a.wait = min(2*a.wait, againMax)
	}
}

// changed makes the timer start small again if a poll got anything done.
func (a *again) changed(done uint64) {
	if a.seen != done {
		a.seen, a.wait = done, againDelay
	}
}

// leave is the end of a poll: it posts what came home in it, if little is left
// posted, and sees to it that what has to be left undone is not forgotten.
func (q *Queue) leave(short bool) {
	half := int64(q.fillTarget+1) / 2
	if q.posted() < half {
		short = !q.refill()
	}
	if short {
		q.c.RefillShort++
	}
	q.starved = q.posted() < half
	q.again.changed(q.c.Posted + q.c.Completed)
	if q.starved || q.untimed && q.sock.Tx.Len() > 0 {
		q.again.start()
	}
}
