// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Collector emits a fresh Snapshot as const metrics at each scrape.
type Collector struct {
	snapshot func() Snapshot
	daemon   *family[Daemon]
	ports    *family[Port]
	queues   *family[Queue]
	umems    *family[Umem]
	pools    *family[PagePool]
	workers  *family[Worker]
}

// NewCollector returns a Collector over snapshot, which is called from any goroutine, also from several at once.
func NewCollector(snapshot func() Snapshot) *Collector {
	return &Collector{
		snapshot: snapshot,
		daemon:   daemonMetrics(),
		ports:    portMetrics(),
		queues:   queueMetrics(),
		umems:    umemMetrics(),
		pools:    poolMetrics(),
		workers:  workerMetrics(),
	}
}

// Register registers the forwarder's metrics and those of the Go runtime and of the process.
func Register(reg prometheus.Registerer, snapshot func() Snapshot) error {
	for _, c := range []prometheus.Collector{
		NewCollector(snapshot),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := reg.Register(c); err != nil {
			return fmt.Errorf("metrics: register: %w", err)
		}
	}
	return nil
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	c.daemon.describe(ch)
	c.ports.describe(ch)
	c.queues.describe(ch)
	c.umems.describe(ch)
	c.pools.describe(ch)
	c.workers.describe(ch)
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	s := c.snapshot()
	c.daemon.collect(ch, &s.Daemon)
	for i := range s.Ports {
		port := &s.Ports[i]
		c.ports.collect(ch, port, port.Name)
		for j := range port.Queues {
			queue := &port.Queues[j]
			c.queues.collect(ch, queue, port.Name, strconv.Itoa(queue.Index))
		}
	}
	for i := range s.Umems {
		c.umems.collect(ch, &s.Umems[i], s.Umems[i].Name)
	}
	for i := range s.Pools {
		c.pools.collect(ch, &s.Pools[i], s.Pools[i].Name)
	}
	for i := range s.Workers {
		c.workers.collect(ch, &s.Workers[i], strconv.Itoa(s.Workers[i].Index))
	}
}
