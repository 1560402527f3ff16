// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const unitFile = "../../configs/systemd/xskfwd.service"

func readUnit(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// directives are the values of a unit by name, in the order of the file.
func directives(t *testing.T, text string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '[' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			t.Fatalf("%s: %q is no directive", unitFile, line)
		}
		found[name] = append(found[name], value)
	}
	return found
}

func TestUnitGrantsWhatTheTableSaysAndNoMore(t *testing.T) {
	unit := directives(t, readUnit(t))
	for _, name := range []string{"CapabilityBoundingSet", "AmbientCapabilities"} {
		if got, want := unit[name], []string{ForUnit()}; !slices.Equal(got, want) {
			t.Errorf("%s = %q, the table says %q", name, got, want)
		}
	}
}

func TestUnitSaysWhatTheDaemonReliesOn(t *testing.T) {
	unit := directives(t, readUnit(t))
	for name, want := range map[string]string{
		"Type":            "notify",
		"ExecStart":       "xskfwd run --config /etc/xskfwd/xskfwd.toml",
		"Restart":         "on-failure",
		"LimitMEMLOCK":    "infinity",
		"ReadWritePaths":  "-/sys/fs/bpf", // else ProtectKernelTunables= makes the pins read-only
		"User":            "root",         // who owns /sys/fs/bpf
		"NoNewPrivileges": "yes",
	} {
		if got := unit[name]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	families := strings.Fields(strings.Join(unit["RestrictAddressFamilies"], " "))
	for _, want := range []string{"AF_XDP", "AF_NETLINK", "AF_UNIX", "AF_INET", "AF_INET6"} {
		if !slices.Contains(families, want) {
			t.Errorf("RestrictAddressFamilies lacks %s: %q", want, families)
		}
	}
	if len(unit["WatchdogSec"]) != 1 || len(unit["ExecReload"]) != 0 {
		t.Errorf("WatchdogSec = %q, ExecReload = %q", unit["WatchdogSec"], unit["ExecReload"])
	}
	filter := unit["SystemCallFilter"]
	if i := slices.Index(filter, "bpf"); i < 0 || i != len(filter)-1 {
		t.Errorf("SystemCallFilter = %q: bpf must come last, for an earlier line takes it away", filter)
	}
}

// systemdAnalyze runs the program on a copy of the unit that names a binary which is there.
func systemdAnalyze(t *testing.T, args ...string) string {
	t.Helper()
	program, err := exec.LookPath("systemd-analyze")
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "xskfwd.service")
	text := strings.Replace(readUnit(t), "ExecStart=xskfwd", "ExecStart="+self, 1)
	if err := os.WriteFile(unit, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program, append(args, unit)...).CombinedOutput()
	if err != nil {
		t.Fatalf("systemd-analyze %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestUnitPassesSystemdVerify(t *testing.T) {
	if out := systemdAnalyze(t, "verify", "--man=no", "--recursive-errors=no"); out != "" {
		t.Errorf("systemd-analyze verify:\n%s", out)
	}
}

// The figure depends on the version of systemd, so that of another one is only logged.
func TestUnitIsAsExposedAsItsCommentSays(t *testing.T) {
	out := systemdAnalyze(t, "security", "--offline=true", "--no-pager")
	got := regexp.MustCompile(`exposure level for xskfwd.service: ([0-9.]+)`).FindStringSubmatch(out)
	noted := regexp.MustCompile(`gives this unit ([0-9.]+), .*\(systemd ([0-9]+);`).FindStringSubmatch(readUnit(t))
	if got == nil || noted == nil {
		t.Fatalf("no figure in the comment (%q) or in:\n%s", noted, out)
	}
	version, err := exec.Command("systemd-analyze", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(version), "systemd "+noted[2]+" ") {
		t.Logf("exposure %s with %.40q", got[1], version)
		return
	}
	if got[1] != noted[1] {
		t.Errorf("exposure is %s, the comment says %s", got[1], noted[1])
	}
}

func TestUnitExplainsEachHardeningItLeavesOut(t *testing.T) {
	var items []struct {
		Name     string `json:"name"`
		Exposure string `json:"exposure"`
	}
	out := systemdAnalyze(t, "security", "--offline=true", "--no-pager", "--json=short")
	if err := json.Unmarshal([]byte(out), &items); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	text, open := readUnit(t), 0
	for _, item := range items {
		if exposure, err := strconv.ParseFloat(item.Exposure, 64); err != nil || exposure == 0 {
			continue
		}
		open++
		first, _, _ := strings.Cut(item.Name, "=")
		if !strings.Contains(text, first) {
			t.Errorf("%s is neither set nor explained (exposure %s)", item.Name, item.Exposure)
		}
	}
	if open == 0 {
		t.Errorf("systemd-analyze found nothing open, which cannot be: %s", out)
	}
}
