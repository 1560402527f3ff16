// SPDX-License-Identifier: Apache-2.0

package sdnotify

import (
	"context"
	"log/slog"
	"time"
)

// FeedWatchdog feeds the manager's watchdog until ctx ends, for as long as every worker is alive. It returns at once when there is no
// watchdog.
//
// slowest says how long the slowest worker has been in its current round. A worker that sleeps because nothing happens is at 0,
// however long it sleeps. A round is bounded to milliseconds, so one of half a watchdog interval will never end by itself: then the
// feeding stops, and the manager restarts the daemon no later than one and a half intervals after the worker got stuck.
func (n *Notifier) FeedWatchdog(ctx context.Context, slowest func() time.Duration, log *slog.Logger) {
	if n.watchdog == 0 {
		return
	}
	// A quarter: one message that comes late, or is lost, is not a dead daemon.
	tick := time.NewTicker(max(n.watchdog/4, time.Millisecond))
	defer tick.Stop()
	n.feed(ctx, tick.C, slowest, log)
}

func (n *Notifier) feed(ctx context.Context, ticks <-chan time.Time, slowest func() time.Duration, log *slog.Logger) {
	stuck, failed := false, false
	for {
		age := slowest()
		if now := age > n.watchdog/2; now != stuck {
			stuck = now
			logChange(log, stuck, age)
		}
		if !stuck {
			err := n.Watchdog()
			if err != nil && !failed {
				log.Warn("the service manager's watchdog could not be fed", "err", err)
			}
			failed = err != nil
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
	}
}

func logChange(log *slog.Logger, stuck bool, age time.Duration) {
	if stuck {
		log.Error("a worker is stuck, the watchdog is no longer fed", "for", age)
	} else {
		log.Warn("all workers run again, the watchdog is fed")
	}
}
