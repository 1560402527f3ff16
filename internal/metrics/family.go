// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// prefix stands before the name of each metric of the forwarder.
const prefix = "xskfwd_"

// A family is all metrics of one kind of object, such as a queue: they share the labels that say which object it is.
type family[T any] struct {
	labels  []string
	metrics []metric[T]
}

// A metric is one name. read takes its samples out of an object and gives each to put.
type metric[T any] struct {
	desc *prometheus.Desc
	read func(object *T, put put)
}

// put emits one sample. The extra label values come after those that say which object it is, in the order of the extra labels.
type put struct {
	ch     chan<- prometheus.Metric
	desc   *prometheus.Desc
	labels []string
}

func (p put) value(kind prometheus.ValueType, v float64, extra ...string) {
	m, err := prometheus.NewConstMetric(p.desc, kind, v, p.with(extra)...)
	p.emit(m, err)
}

func (p put) histogram(count uint64, sum float64, atMost map[float64]uint64) {
	m, err := prometheus.NewConstHistogram(p.desc, count, sum, atMost, p.with(nil)...)
	p.emit(m, err)
}

// emit passes an error on instead of the sample: it then shows in the scrape's error and costs only this one series.
func (p put) emit(m prometheus.Metric, err error) {
	if err != nil {
		m = prometheus.NewInvalidMetric(p.desc, err)
	}
	p.ch <- m
}

func (p put) with(extra []string) []string {
	all := make([]string, 0, len(p.labels)+len(extra))
	for _, v := range p.labels {
		all = append(all, labelValue(v))
	}
	for _, v := range extra {
		all = append(all, labelValue(v))
	}
	return all
}

// labelValue makes any bytes, such as those of an interface name, into the UTF-8 which a label must be. Bytes that are not are written
// as \xNN. Quotes, backslashes and line feeds are left alone: the text format escapes them.
func labelValue(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02x`, s[0])
		} else {
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

func newFamily[T any](labels ...string) *family[T] {
	return &family[T]{labels: labels}
}

// add declares a metric with any number of samples an object, told apart by the extra labels.
func (f *family[T]) add(name, help string, extra []string, read func(*T, put)) {
	labels := append(append([]string{}, f.labels...), extra...)
	desc := prometheus.NewDesc(prefix+name, help, labels, nil)
	f.metrics = append(f.metrics, metric[T]{desc, read})
}

// counter declares a counter with one sample an object.
func (f *family[T]) counter(name, help string, read func(*T) uint64) {
	f.add(name, help, nil, func(o *T, p put) { p.value(prometheus.CounterValue, float64(read(o))) })
}

// gauge declares a gauge with one sample an object.
func (f *family[T]) gauge(name, help string, read func(*T) float64) {
	f.add(name, help, nil, func(o *T, p put) { p.value(prometheus.GaugeValue, read(o)) })
}

// info declares a gauge that is always 1 and carries strings.
func (f *family[T]) info(name, help string, labels []string, read func(*T) []string) {
	f.add(name, help, labels, func(o *T, p put) { p.value(prometheus.GaugeValue, 1, read(o)...) })
}

func (f *family[T]) describe(ch chan<- *prometheus.Desc) {
	for _, m := range f.metrics {
		ch <- m.desc
	}
}

// collect emits every metric of one object.
func (f *family[T]) collect(ch chan<- prometheus.Metric, object *T, labels ...string) {
	for _, m := range f.metrics {
		m.read(object, put{ch, m.desc, labels})
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
