// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/xskfwd/xskfwd/internal/netlab"
)

// scrapeTimeout bounds a look at the metrics, which take milliseconds.
const scrapeTimeout = 10 * time.Second

// Metrics are the metrics of a daemon at one moment, by name.
type Metrics map[string]*dto.MetricFamily

// Scrape reads a daemon's metrics, as Prometheus would, from inside its
// namespace.
func Scrape(ns *netlab.NS, addr string) (m Metrics, err error) {
	err = ns.Do(func() error {
		// The connection is made on this thread, which is in the namespace; what
		// reads from it later needs none.
		conn, err := net.DialTimeout("tcp", addr, scrapeTimeout)
		if err != nil {
			return err
		}
		defer conn.Close()
		m, err = get(conn, addr)
		return err
	})
	return m, err
}

func get(conn net.Conn, addr string) (Metrics, error) {
	client := http.Client{Timeout: scrapeTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return conn, nil },
	}}
	answer, err := client.Get("http://" + addr + "/metrics")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics: %s", answer.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(answer.Body)
}

// Sum adds up all series of a counter or gauge that have these labels, given as
// name, value and so on.
func (m Metrics) Sum(name string, labels ...string) float64 {
	var total float64
	for _, series := range m[name].GetMetric() {
		if hasLabels(series, labels) {
			total += series.GetCounter().GetValue() + series.GetGauge().GetValue()
		}
	}
	return total
}

func hasLabels(series *dto.Metric, labels []string) bool {
	for i := 0; i+1 < len(labels); i += 2 {
		found := false
		for _, l := range series.GetLabel() {
			found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
		}
		if !found {
			return false
		}
	}
	return true
}
