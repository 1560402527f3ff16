// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"time"
)

const (
	// drainTimeout bounds how long a stop waits for frames that are on their
	// way. A peer that is down or a NIC that hangs keeps frames for ever.
	drainTimeout = time.Second
	// drainLook is how often the workers are asked. Completions of a software
	// device are back within microseconds, of a NIC within milliseconds.
	drainLook = 2 * time.Millisecond
)

// drain waits until all that was received has been sent and completed. It
// returns how many frames are still on their way when ctx or the time ends.
// Nothing must come in any more.
func (p *plane) drain(ctx context.Context) uint64 {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	look := time.NewTicker(drainLook)
	defer look.Stop()
	for quiet := 0; ; {
		for _, w := range p.workers {
			w.Kick() // whoever sleeps reads its completions and publishes
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return p.onTheWay()
		}
		// Twice, since the first look may be at cuts from before the kick.
		if p.onTheWay() > 0 {
			quiet = 0
		} else if quiet++; quiet == 2 {
			return 0
		}
	}
}

// onTheWay counts frames received or sent and not yet home.
func (p *plane) onTheWay() uint64 {
	var n uint64
	for _, c := range p.cuts() {
		n += uint64(c.Rings.Rx)
		n += uint64(max(c.Timer.Unreaped, 0))
	}
	return n
}
