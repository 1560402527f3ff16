// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"time"

	"github.com/xskfwd/xskfwd/internal/bench"
)

// numbers are the daemon's metrics at one moment.
type numbers struct {
	at      time.Time
	metrics bench.Metrics
	err     error
}

// scrape reads the daemon's metrics.
func (l *lab) scrape() numbers {
	n := numbers{at: time.Now()}
	n.metrics, n.err = bench.Scrape(l.router, metricsAddr)
	return n
}

// sum adds up all series of a metric of ours that have these labels.
func (n numbers) sum(name string, labels ...string) float64 {
	return n.metrics.Sum("xskfwd_"+name, labels...)
}
