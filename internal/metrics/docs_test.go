// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
)

const docsFile = "../../docs/METRICS.md"

// section is what a document has between two markers, and what is before and after.
func section(t *testing.T, text, name string) (before, body, after string) {
	t.Helper()
	begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->"
	before, rest, ok1 := strings.Cut(text, begin)
	body, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no section %s", docsFile, name)
	}
	return before + begin, body, end + after
}

func readDocs(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDocsTableIsWhatTheRegistryHas(t *testing.T) {
	var table strings.Builder
	table.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, f := range gather(t, busy(1)) {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()), labelsOf(f), f.GetHelp())
	}
	before, body, after := section(t, readDocs(t), "metrics")
	if os.Getenv("XSKFWD_UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(docsFile, []byte(before+table.String()+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(body, table.String()); diff != "" {
		t.Errorf("%s differs from the registry (-docs +registry); XSKFWD_UPDATE_GOLDEN=1 writes the table anew:\n%s", docsFile, diff)
	}
}

// labelsOf are the label names of a metric, or a dash.
func labelsOf(f *dto.MetricFamily) string {
	names := []string{}
	for _, l := range f.GetMetric()[0].GetLabel() {
		names = append(names, l.GetName())
	}
	if len(names) == 0 {
		return "–"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func TestDocsExplainEveryLabelValueAndNoOther(t *testing.T) {
	documented := map[string]bool{}
	_, body, _ := section(t, readDocs(t), "labels")
	for _, row := range regexp.MustCompile("(?m)^\\| ([a-z]+)(?: of `([a-z_]+)`)? \\| ([a-z_, ]+) \\|").FindAllStringSubmatch(body, -1) {
		for value := range strings.SplitSeq(row[3], ", ") {
			if value != "value" {
				documented[row[1]+" "+row[2]+" "+value] = true
			}
		}
	}
	exported := map[string]bool{}
	for _, f := range gather(t, busy(1)) {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				switch l.GetName() {
				case "action", "ring", "result", "source", "state":
					exported[l.GetName()+"  "+l.GetValue()] = true
				case "reason": // each metric has reasons of its own
					exported["reason "+strings.TrimPrefix(f.GetName(), prefix)+" "+l.GetValue()] = true
				}
			}
		}
	}
	if diff := cmp.Diff(documented, exported); diff != "" {
		t.Errorf("label values (-documented +exported):\n%s", diff)
	}
}

func TestDocsNameNoMetricThatIsNotThere(t *testing.T) {
	there := map[string]bool{}
	for _, f := range gather(t, busy(1)) {
		there[strings.TrimPrefix(f.GetName(), prefix)] = true
	}
	absent := "page_pool_alloc_slow_high_order_total" // said to be left out
	for _, m := range regexp.MustCompile("`((?:[a-z]+_)+total)`").FindAllStringSubmatch(readDocs(t), -1) {
		if name := strings.TrimPrefix(m[1], prefix); !there[name] && name != absent {
			t.Errorf("%s names %s", docsFile, name)
		}
	}
}
