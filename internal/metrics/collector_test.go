// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func TestCollectorPassesTheLinterInAPedanticRegistry(t *testing.T) {
	problems, err := testutil.GatherAndLint(registry(t, func() Snapshot { return busy(4) }))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, prefix) {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestCollectorWritesTheGoldenText(t *testing.T) {
	var text bytes.Buffer
	for _, f := range gather(t, busy(1)) {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "testdata/busy.txt", text.Bytes())
}

// golden compares with a file, or writes it when XSKFWD_UPDATE_GOLDEN is set.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if os.Getenv("XSKFWD_UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); XSKFWD_UPDATE_GOLDEN=1 writes it anew:\n%s", file, diff)
	}
}

// Every field of the fixture is set and most differ, so a field that is read for another shows in the golden text. This test finds those
// which are not read at all.
func TestCollectorReadsEveryCounterItDeclares(t *testing.T) {
	declared := map[string]bool{}
	descs := make(chan *prometheus.Desc)
	go func() {
		NewCollector(nil).Describe(descs)
		close(descs)
	}()
	for d := range descs {
		_, name, _ := strings.Cut(d.String(), `fqName: "`)
		name, _, _ = strings.Cut(name, `"`)
		declared[name] = true
	}
	for _, f := range gather(t, busy(1)) {
		delete(declared, f.GetName())
		if sum(f) == 0 && f.GetName() != prefix+"page_pool_bulk_unknown_frames_total" && f.GetName() != prefix+"xsk_zerocopy" {
			t.Errorf("%s is 0 although all was counted", f.GetName())
		}
	}
	for name := range declared {
		t.Errorf("%s is declared and has no sample", name)
	}
}

func sum(f *dto.MetricFamily) float64 {
	var n float64
	for _, m := range f.GetMetric() {
		n += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return n
}

func TestCollectorOfAnEmptySnapshotHasOnlyTheDaemon(t *testing.T) {
	for _, f := range gather(t, Snapshot{}) {
		switch f.GetName() {
		case prefix + "build_info":
		case prefix + "start_time_seconds", prefix + "config_last_reload_success", prefix + "config_last_reload_timestamp_seconds":
			if got := sum(f); got != 0 {
				t.Errorf("%s = %v before anything happened", f.GetName(), got)
			}
		default:
			t.Errorf("%s has a sample of nothing", f.GetName())
		}
	}
}

func TestCollectorTakesAnyBytesAsLabelValues(t *testing.T) {
	names := map[string]string{ // given: seen
		`quote"name`:      `quote"name`,
		`back\slash`:      `back\slash`,
		"line\nfeed":      "line\nfeed",
		"größe€":          "größe€",
		"not\xff\xfeutf8": `not\xff\xfeutf8`,
		"cut\xe2\x82":     `cut\xe2\x82`,
		"{a=\"b\"} 1":     "{a=\"b\"} 1",
		"":                "",
	}
	for given, want := range names {
		s := busy(1)
		s.Ports[0].Name, s.Ports[0].Ifname = given, given
		for i := range s.Ports[0].Queues[0].ReceiveDrops {
			s.Ports[0].Queues[0].ReceiveDrops[i].Reason += given
		}
		s.Pools[0].Name, s.Umems[0].Name = given, given
		var text bytes.Buffer
		for _, f := range gather(t, s) {
			if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
				t.Fatal(err)
			}
		}
		if !portNames(t, &text)[want] {
			t.Errorf("port %q: no series with port label %q after a round trip through the text format", given, want)
		}
	}
}

// portNames parses the text format and returns the values of the port label.
func portNames(t *testing.T, text *bytes.Buffer) map[string]bool {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range families[prefix+"port_info"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "port" {
				names[l.GetValue()] = true
			}
		}
	}
	return names
}

func TestCollectorBadHistogramCostsOnlyItsOwnSeries(t *testing.T) {
	s := busy(1)
	s.Workers[0].PollDuration.Counts = s.Workers[0].PollDuration.Counts[1:]
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(NewCollector(func() Snapshot { return s }))
	families, err := reg.Gather()
	if err == nil || !strings.Contains(err.Error(), "3 counts for 3 bounds") {
		t.Errorf("err = %v, want the mismatch named", err)
	}
	if got, want := len(families), len(gather(t, busy(1)))-1; got != want {
		t.Errorf("%d metrics are left, want %d", got, want)
	}
}

func TestHistogramsCountEachObservationOnce(t *testing.T) {
	families := map[string]*dto.Histogram{}
	for _, f := range gather(t, busy(1)) {
		if f.GetType() == dto.MetricType_HISTOGRAM {
			families[f.GetName()] = f.GetMetric()[0].GetHistogram()
		}
	}
	type shape struct {
		Count  uint64
		Sum    float64
		AtMost map[float64]uint64
	}
	want := map[string]shape{
		prefix + "napi_poll_duration_seconds":   {13, 123e-6, map[float64]uint64{1e-6: 5, 10e-6: 9, 10e-3: 12}},
		prefix + "page_pool_bulk_length_frames": {61, 923, map[float64]uint64{1: 3, 2: 3, 4: 3, 8: 3, 15: 11}},
	}
	got := map[string]shape{}
	for name, h := range families {
		s := shape{h.GetSampleCount(), h.GetSampleSum(), map[float64]uint64{}}
		for _, b := range h.GetBucket() {
			s.AtMost[b.GetUpperBound()] = b.GetCumulativeCount()
		}
		got[name] = s
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("histograms (-want +got):\n%s", diff)
	}
}

// Prometheus pays for each series. This is the promise of docs/METRICS.md, Go and process metrics included.
func TestCollectorOfTwoPortsWithFourQueuesHasFewerThan900Series(t *testing.T) {
	s := busy(4)
	for i := range s.Workers {
		s.Workers[i].PollDuration = Durations{Bounds: make([]time.Duration, 10), Counts: make([]uint64, 11)}
		for j := range 10 {
			s.Workers[i].PollDuration.Bounds[j] = time.Duration(j+1) * time.Microsecond
		}
	}
	families, err := registry(t, func() Snapshot { return s }).Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	series := 0
	for line := range strings.Lines(text.String()) {
		if !strings.HasPrefix(line, "#") {
			series++
		}
	}
	t.Logf("%d series, %d bytes", series, text.Len())
	if series >= 900 {
		t.Errorf("%d series, want fewer than 900", series)
	}
}

func TestCountersNeverGoBackWhenSocketsAreReplaced(t *testing.T) {
	var xsk Baseline[XSKStatistics]
	var xdp Baseline[XDPStatistics]
	s := busy(1)
	last := map[string]float64{}
	scrape := func(when string) {
		s.Ports[0].Queues[0].XSK = xsk.Total()
		s.Ports[0].XDP = xdp.Total()
		for _, f := range gather(t, s) {
			if f.GetType() != dto.MetricType_COUNTER {
				continue
			}
			for _, m := range f.GetMetric() {
				key := f.GetName() + fmt.Sprint(m.GetLabel())
				if v := m.GetCounter().GetValue(); v < last[key] {
					t.Errorf("%s: %s went back from %v to %v", when, key, last[key], v)
				} else {
					last[key] = v
				}
			}
		}
	}
	scrape("before the first socket")
	for range 3 {
		socket, program := xsk.Begin(), xdp.Begin()
		scrape("new socket, nothing read")
		socket.Observe(XSKStatistics{})
		scrape("new socket read at zero")
		socket.Observe(XSKStatistics{1, 2, 3, 4, 5, 6})
		program.Observe(XDPStatistics{7, 8, 9, 10})
		scrape("socket in use")
	}
	if got, want := xsk.Total(), (XSKStatistics{3, 6, 9, 12, 15, 18}); got != want {
		t.Errorf("three sockets counted %+v, want %+v", got, want)
	}
	if got, want := xdp.Total(), (XDPStatistics{21, 24, 27, 30}); got != want {
		t.Errorf("three programs counted %+v, want %+v", got, want)
	}
	if len(last) < 100 {
		t.Errorf("only %d counters were watched", len(last))
	}
}
