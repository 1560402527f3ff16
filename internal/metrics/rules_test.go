// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

const rulesDir = "../../configs/prometheus/"

// The rules may name only metrics, labels and label values that are exported. A rule that names another never fires and nobody sees it.
func TestRulesNameOnlyWhatIsExported(t *testing.T) {
	text, err := os.ReadFile(rulesDir + "xskfwd.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	exported := map[string]*dto.MetricFamily{}
	for _, f := range gather(t, busy(1)) {
		exported[f.GetName()] = f
	}
	used := regexp.MustCompile(`(xskfwd_[a-z_]+)(?:\{([a-z]+)="([a-z_]+)"\})?`).FindAllStringSubmatch(string(text), -1)
	if len(used) < 10 {
		t.Fatalf("only %d metrics found in the rules", len(used))
	}
	for _, u := range used {
		f := exported[u[1]]
		if f == nil {
			t.Errorf("%s is not exported", u[1])
		} else if u[2] != "" && !hasLabel(f, u[2], u[3]) {
			t.Errorf("%s has no series with %s=%q", u[1], u[2], u[3])
		}
	}
	// Templates may use what sum by keeps, or what the metric has.
	for _, l := range regexp.MustCompile(`\$labels\.([a-z_]+)`).FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(" instance pool port queue reason worker ", " "+l[1]+" ") {
			t.Errorf("a template uses label %s", l[1])
		}
	}
}

func hasLabel(f *dto.MetricFamily, name, value string) bool {
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == name && l.GetValue() == value {
				return true
			}
		}
	}
	return false
}

func TestScrapeExampleAsksTheDefaultAddress(t *testing.T) {
	text, err := os.ReadFile(rulesDir + "scrape.yml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), DefaultAddr) {
		t.Errorf("scrape.yml does not name %s", DefaultAddr)
	}
}

func TestPromtoolAcceptsRulesAndSeesThemFire(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatal(err)
	default:
		t.Skip("promtool is not installed; the other tests of the rules need nothing")
	}
	for _, args := range [][]string{
		{"check", "rules", rulesDir + "xskfwd.rules.yml"},
		{"check", "config", rulesDir + "scrape.yml"},
		{"test", "rules", "testdata/rules_test.yml"},
	} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
