// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/config"
	"github.com/xskfwd/xskfwd/internal/demo"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing them")

func TestHelpIsGolden(t *testing.T) {
	for name, args := range map[string][]string{
		"root": {"--help"}, "run": {"run", "--help"}, "demo": {"demo", "--help"}, "detach": {"detach", "--help"},
		"version": {"version", "--help"}, "completion": {"completion", "--help"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if code := w.main(args); code != exitOK || w.err.String() != "" {
				t.Fatalf("exit code %d, stderr %q", code, w.err.String())
			}
			golden(t, "help-"+name+".txt", w.out.String())
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); run: go test ./cmd/xskfwd -update\n%s", path, diff)
	}
}

func TestRunHasThePromisedFlagsAndDefaults(t *testing.T) {
	cmd := newWorld(t).runCommand()
	for name, def := range map[string]string{
		"port": "", "wire": "", "xdp": "auto", "zerocopy": "prefer", "workers": "0", "cpus": "", "poll": "adaptive",
		"umem-frames": "0", "frame-size": "2048", "rx-ring": "2048", "tx-ring": "2048", "fill-ring": "2048",
		"completion-ring": "2048", "bulk-size": "16", "bulk-flush": "partition", "tx-timer": "5ms",
		"tx-timer-arm": "idle", "tx-frames": "25", "metrics": "127.0.0.1:9750", "config": "",
	} {
		f := cmd.Flags().Lookup(name)
		if f == nil {
			t.Errorf("no flag --%s", name)
			continue
		}
		if f.DefValue != def {
			t.Errorf("--%s: default %q, want %q", name, f.DefValue, def)
		}
	}
	if f := cmd.Flags().Lookup("port"); f.Shorthand != "p" {
		t.Errorf("--port: short form %q, want p", f.Shorthand)
	}
}

func TestEverySettingIsFlagManPageAndSample(t *testing.T) {
	w := newWorld(t)
	cmd, page, sample := w.runCommand(), string(w.manPage(w.root())), string(config.Sample())
	for _, s := range config.Settings() {
		if cmd.Flags().Lookup(s.Name) == nil {
			t.Errorf("no flag --%s", s.Name)
		}
		if !strings.Contains(page, ".B "+roff(option{name: s.Name, short: s.Short, arg: s.Arg}.term())+"\n") {
			t.Errorf("--%s is not in the man page", s.Name)
		}
		if !strings.Contains(sample, "\n"+s.Key+" = ") && !strings.Contains(sample, "\n#"+s.Key+" = ") {
			t.Errorf("%s is not in the sample", s.Key)
		}
	}
}

// TestMistakesAreOneLineEach has what goes to standard error, and the exit code.
func TestMistakesAreOneLineEach(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.toml")
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"rnu", exitUsage, `unknown command "rnu"; did you mean run?`},
		{"serve", exitUsage, `unknown command "serve"; xskfwd --help lists the commands`},
		{"run eth0", exitUsage, `unexpected argument "eth0"; ports are given by --port, wires by --wire`},
		{"run --ports a", exitUsage, `unknown flag --ports; did you mean --port?`},
		{"run --colour", exitUsage, `unknown flag: --colour; xskfwd run --help lists the flags`},
		{"run -x", exitUsage, `unknown shorthand flag: 'x' in -x; xskfwd run --help lists the flags`},
		{"run --port", exitUsage, `flag needs an argument: --port; xskfwd run --help lists the flags`},
		{"run", exitUsage, `no ports: name two with --port, or with the key ports in the file, and join them with --wire`},
		{"run --config " + missing, exitUsage, `configuration file: open ` + missing + `: no such file or directory`},
		{"run -p a -p b --wire a=b --rx-ring 100 --poll spin", exitUsage,
			"--poll spin: unknown; allowed: interrupt, adaptive, busy\n" +
				"--rx-ring 100: not a power of two; allowed: a power of two from 64 to 32768"},
		{"run -p a -p b --wire a=b", exitFailure, "port a: bind AF_XDP: device or resource busy\nport b: no such device"},
		{"detach a", exitUsage, `unexpected argument "a"; detach works on all ports of the network namespace`},
		{"detach", exitFailure, `detach: operation not permitted`},
		{"version 1", exitUsage, `unexpected argument "1"`},
		{"completion tcsh", exitUsage, `completion tcsh: name one shell; allowed: bash, zsh, fish`},
		{"demo --duration 5", exitUsage, `--duration "5": not possible; allowed: a time with a unit from 0 to 24h, such as 30s`},
		{"demo --frames -1 --rate x --plain=no", exitUsage,
			"--frames \"-1\": not possible; allowed: 0 to 1000000000\n" +
				"--rate \"x\": not possible; allowed: 0 to 1000000000\n" +
				"--plain \"no\": not possible; allowed: true, false"},
		{"demo", exitFailure, `demo: 7 of 1000 frames are missing`},
	} {
		t.Run(test.args, func(t *testing.T) {
			w := newWorld(t)
			w.run = func(context.Context, *config.Config, *slog.Logger) error {
				return errors.Join(errors.New("port a: bind AF_XDP: device or resource busy"), errors.New("port b: no such device"))
			}
			w.detach = func(context.Context, *slog.Logger, io.Writer) error {
				return fmt.Errorf("detach: %w", unix.EPERM)
			}
			w.demo = func(context.Context, demo.Options) error { return errors.New("demo: 7 of 1000 frames are missing") }
			code := w.main(strings.Fields(test.args))
			want := "xskfwd: " + strings.ReplaceAll(test.want, "\n", "\nxskfwd: ") + "\n"
			if code != test.code || w.err.String() != want || w.out.String() != "" {
				t.Errorf("exit code %d, want %d\nstdout %q\nstderr %s\n  want %s", code, test.code, w.out.String(), w.err.String(), want)
			}
		})
	}
}

// An unset variable in a script must not turn a file into none.
func TestEmptyNamesAreMistakes(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{append(slices.Clone(runWire), "--config", ""), `--config "": names no file; leave the flag out to read none`},
		{append(slices.Clone(runWire), "--config="), `--config "": names no file; leave the flag out to read none`},
		{[]string{"man", ""}, `man "": names no directory; leave the argument out to print the page`},
	} {
		t.Chdir(t.TempDir())
		w := newWorld(t)
		if code := w.main(test.args); code != exitUsage || w.err.String() != "xskfwd: "+test.want+"\n" {
			t.Errorf("%q: exit code %d, stderr %q, want %q", test.args, code, w.err.String(), test.want)
		}
	}
}

func TestNoCommandShowsHelpAsAMistake(t *testing.T) {
	w := newWorld(t)
	if code := w.main([]string{}); code != exitUsage || w.out.String() != "" {
		t.Errorf("exit code %d, stdout %q", code, w.out.String())
	}
	if !strings.Contains(w.err.String(), "Usage:") || !strings.HasSuffix(w.err.String(), "\nxskfwd: no command given\n") {
		t.Errorf("stderr %s", w.err.String())
	}
}

func TestRunPassesFlagsAndFileOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.toml")
	if err := os.WriteFile(path, []byte("ports = [\"a\", \"b\"]\nwires = [\"a=b\"]\nrx-ring = 512\nreplace = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	var got *config.Config
	w.run = func(_ context.Context, cfg *config.Config, _ *slog.Logger) error {
		got = cfg
		return nil
	}
	args := []string{"run", "--config", path, "-p", "eth0:1", "--port=eth1", "--wire", "eth0=eth1", "--tx-ring", "64", "--tx-ring", "128", "--metrics", ""}
	if code := w.main(args); code != exitOK {
		t.Fatalf("exit code %d: %s", code, w.err.String())
	}
	want := config.Defaults()
	want.Ports = []config.Port{{Name: "eth0", Queues: []int{1}}, {Name: "eth1"}}
	want.Wires = []config.Wire{{A: "eth0", B: "eth1"}}
	want.RxRing, want.TxRing, want.Replace, want.Metrics = 512, 128, true, ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRunSwitchNeedsNoValue(t *testing.T) {
	w := newWorld(t)
	var got *config.Config
	w.run = func(_ context.Context, cfg *config.Config, _ *slog.Logger) error {
		got = cfg
		return nil
	}
	if code := w.main([]string{"run", "--replace", "-p", "a", "-p", "b", "--wire", "a=b"}); code != exitOK || !got.Replace {
		t.Errorf("exit code %d, config %+v: %s", code, got, w.err.String())
	}
}

func TestDemoKnowsWhetherAnybodyWatches(t *testing.T) {
	for _, test := range []struct {
		terminal bool
		term     string
		args     string
		duration time.Duration
		live     bool
	}{
		{false, "", "", 10 * time.Second, false},
		{false, "", "--duration 3s", 3 * time.Second, false},
		{true, "xterm", "", 0, true},
		{true, "xterm", "--duration 1m", time.Minute, true},
		{true, "xterm", "--plain", 0, false},
		{true, "dumb", "", 0, false},
	} {
		w := newWorld(t)
		w.isTerminal = func(io.Writer) bool { return test.terminal }
		w.getenv = func(string) string { return test.term }
		var got demo.Options
		w.demo = func(_ context.Context, o demo.Options) error {
			got = o
			return nil
		}
		args := append([]string{"demo", "--frames", "7", "--rate", "8"}, strings.Fields(test.args)...)
		if code := w.main(args); code != exitOK {
			t.Fatalf("%v: exit code %d: %s", args, code, w.err.String())
		}
		if got.Duration != test.duration || got.Live != test.live || got.Frames != 7 || got.Rate != 8 {
			t.Errorf("%+v: got %+v", test, got)
		}
	}
}

func TestVersionSaysWhatTheBinaryIs(t *testing.T) {
	w := newWorld(t)
	w.main([]string{"version"})
	want := fmt.Sprintf("xskfwd   v1.2.3\nrevision 0123abc (modified)\ngo       %s %s/%s\nkernel   6.18.0\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if got := w.out.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestVersionOfABinaryWithoutBuildInfo(t *testing.T) {
	w := newWorld(t)
	w.buildInfo = system().buildInfo
	if code := w.main([]string{"version"}); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if got := w.revision(); got == "" {
		t.Error("no revision, want a word for it")
	}
}

func TestCompletion(t *testing.T) {
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"run", "--port", ""}, []string{"eth0", "eth1", "wan"}},
		{[]string{"run", "-p", "eth0:0-3", "-p", "eth1", "-p", "wan", "--wire", ""}, []string{"eth0=eth1", "eth0=wan", "eth1=wan"}},
		{[]string{"run", "-p", "a", "-p", "b", "-p", "c", "-p", "d", "--wire", "a=b", "--wire", ""}, []string{"c=d"}},
		{[]string{"run", "--xdp", ""}, []string{"auto", "native", "generic"}},
		{[]string{"run", "--frame-size", ""}, []string{"2048", "4096"}},
		{[]string{"run", "--config", ""}, []string{"toml"}},
		{[]string{"completion", ""}, []string{"bash", "zsh", "fish"}},
	} {
		w := newWorld(t)
		w.main(append([]string{"__complete"}, test.args...))
		lines := strings.Split(strings.TrimSpace(w.out.String()), "\n")
		if diff := cmp.Diff(test.want, lines[:len(lines)-1]); diff != "" { // the last one is a directive
			t.Errorf("%q (-want +got):\n%s", test.args, diff)
		}
	}
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		w := newWorld(t)
		if code := w.main([]string{"completion", shell}); code != exitOK || !strings.Contains(w.out.String(), "xskfwd") {
			t.Errorf("%s: exit code %d, %d bytes", shell, code, len(w.out.String()))
		}
	}
}

func TestManWritesThePage(t *testing.T) {
	w, dir := newWorld(t), t.TempDir()
	if code := w.main([]string{"man", dir}); code != exitOK {
		t.Fatalf("exit code %d: %s", code, w.err.String())
	}
	written, err := os.ReadFile(filepath.Join(dir, "xskfwd.8"))
	if err != nil {
		t.Fatal(err)
	}
	w.main([]string{"man"})
	if w.out.String() != string(written) {
		t.Error("man DIR and man differ")
	}
}

func TestManPageHasItsSections(t *testing.T) {
	w := newWorld(t)
	page := string(w.manPage(w.root()))
	for _, want := range []string{
		"NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "OPTIONS OF RUN", "OPTIONS OF DEMO", "CONFIGURATION FILE",
		"EXIT STATUS", "SIGNALS", "CAPABILITIES", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO",
	} {
		if !strings.Contains(page, "\n.SH "+want+"\n") {
			t.Errorf("no section %s", want)
		}
	}
	for _, o := range demoFlags() {
		if !strings.Contains(page, ".B "+roff(o.term())+"\n") {
			t.Errorf("--%s is not in the page", o.name)
		}
	}
}
