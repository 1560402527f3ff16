// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// scrapeTimeout bounds a look at the metrics, which take a millisecond.
const scrapeTimeout = 5 * time.Second

// numbers are the daemon's metrics at one moment.
type numbers struct {
	at       time.Time
	families map[string]*dto.MetricFamily
	err      error
}

// scrape reads the daemon's metrics, as Prometheus would, from inside the
// router's namespace.
func (l *lab) scrape() numbers {
	n := numbers{at: time.Now()}
	n.err = l.router.Do(func() error {
		// The connection is made on this goroutine's thread, which is in the
		// namespace; what reads it later needs no namespace.
		conn, err := net.DialTimeout("tcp", metricsAddr, scrapeTimeout)
		if err != nil {
			return err
		}
		defer conn.Close()
		n.families, err = get(conn)
		return err
	})
	return n
}

func get(conn net.Conn) (map[string]*dto.MetricFamily, error) {
	transport := &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		DisableKeepAlives: true,
	}
	client := http.Client{Transport: transport, Timeout: scrapeTimeout}
	r, err := client.Get("http://" + metricsAddr + "/metrics")
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics: %s", r.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(r.Body)
}

// sum adds up all series of a metric that have these labels (name, value, ...).
func (n numbers) sum(name string, labels ...string) float64 {
	var total float64
	for _, m := range n.families["xskfwd_"+name].GetMetric() {
		if matches(m, labels) {
			total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return total
}

func matches(m *dto.Metric, labels []string) bool {
	for i := 0; i+1 < len(labels); i += 2 {
		found := false
		for _, l := range m.GetLabel() {
			found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
		}
		if !found {
			return false
		}
	}
	return true
}
