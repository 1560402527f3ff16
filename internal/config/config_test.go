// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the sample file instead of comparing it")

func TestSampleIsTheCommittedFile(t *testing.T) {
	path := filepath.Join("..", "..", "configs", "xskfwd.toml")
	if *update {
		if err := os.WriteFile(path, Sample(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(committed, Sample()) {
		t.Errorf("%s differs from Sample(); run: go test ./internal/config -update\n%s",
			path, cmp.Diff(string(committed), string(Sample())))
	}
}

func TestSampleParsesToDefaults(t *testing.T) {
	got, err := Parse("sample", Sample())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Defaults(), got); diff != "" {
		t.Errorf("the sample is not the defaults (-want +got):\n%s", diff)
	}
}

func TestFramesDerivedFillTheRingsTheKernelHolds(t *testing.T) {
	c := Defaults()
	c.RxRing, c.TxRing, c.FillRing, c.CompletionRing = 64, 128, 256, 512
	if got, err := c.Frames(3); err != nil || got != 3*384 {
		t.Errorf("Frames(3) = %d, %v; want %d", got, err, 3*384)
	}
	c.UmemFrames = 3 * MinQueueFrames
	if got, err := c.Frames(3); err != nil || got != c.UmemFrames {
		t.Errorf("Frames(3) = %d, %v; want the %d asked for", got, err, c.UmemFrames)
	}
	if got, err := c.Frames(4); err == nil {
		t.Errorf("Frames(4) = %d, want an error: less than each queue needs", got)
	}
}

func TestWorkerCountFollowsQueuesAndCPUs(t *testing.T) {
	for _, test := range []struct {
		workers      int
		list         []int
		queues, cpus int
		want         int
	}{
		{0, nil, 4, 8, 4},
		{0, nil, 8, 4, 4},
		{0, nil, 0, 4, 1},
		{0, []int{2, 3}, 4, 8, 2},
		{0, []int{2, 3}, 1, 8, 1},
		{6, nil, 4, 2, 6},
	} {
		c := Defaults()
		c.Workers, c.CPUs = test.workers, test.list
		if got := c.WorkerCount(test.queues, test.cpus); got != test.want {
			t.Errorf("workers %d, CPUs %v: WorkerCount(%d, %d) = %d, want %d",
				test.workers, test.list, test.queues, test.cpus, got, test.want)
		}
	}
}

func TestValidateChecksWhatNobodyParsed(t *testing.T) {
	valid := func() *Config {
		c := Defaults()
		c.Ports = []Port{{Name: "a"}, {Name: "b"}}
		c.Wires = []Wire{{"a", "b"}}
		return c
	}
	if err := valid().Validate(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Config){
		"port a/b: ":       func(c *Config) { c.Ports[0].Name = "a/b" },
		`port a:: `:        func(c *Config) { c.Ports[0].Queues = []int{} },
		"port a:1,1: ":     func(c *Config) { c.Ports[0].Queues = []int{1, 1} },
		"port a:-1: ":      func(c *Config) { c.Ports[0].Queues = []int{-1} },
		"port a:4096: ":    func(c *Config) { c.Ports[0].Queues = []int{4096} },
		"wire a=a: ":       func(c *Config) { c.Wires[0].B = "a" },
		"cpus 3,3: ":       func(c *Config) { c.CPUs = []int{3, 3} },
		`poll "": unknown`: func(c *Config) { c.Poll = "" },
		"rx-ring 0: ":      func(c *Config) { c.RxRing = 0 },
	} {
		c := valid()
		spoil(c)
		if got := text(c.Validate()); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want it to start with %q", got, want)
		}
	}
}

func TestSettingsAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Settings() {
		if s.Name == "" || s.Key == "" || s.Help == "" || s.Allowed == "" || (s.Arg == "" && s.Kind != Switch) {
			t.Errorf("setting %q has no name, key, help, allowed values or argument", s.Name)
		}
		if (s.Kind == List) != (s.Example != "") || (s.Kind == List) != (s.clear != nil) {
			t.Errorf("setting %s: examples and clear are for lists", s.Name)
		}
		if seen[s.Name] {
			t.Errorf("setting %s is there twice", s.Name)
		}
		seen[s.Name] = true
	}
	if fields := reflect.TypeFor[Config]().NumField(); fields != len(seen) {
		t.Errorf("Config has %d fields, the table %d settings", fields, len(seen))
	}
}
