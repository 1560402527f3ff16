// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// wired are the flags of the smallest valid command line.
func wired(more ...Override) []Override {
	return append([]Override{{"port", []string{"eth0", "eth1"}}, {"wire", []string{"eth0=eth1"}}}, more...)
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadWithoutFileIsDefaultsAndFlags(t *testing.T) {
	got, err := Load("", wired()...)
	if err != nil {
		t.Fatal(err)
	}
	want := Defaults()
	want.Ports = []Port{{Name: "eth0"}, {Name: "eth1"}}
	want.Wires = []Wire{{"eth0", "eth1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLoadReadsEverySettingFromTheFile(t *testing.T) {
	path := writeFile(t, `
ports = [
  "eth0:6,0-3", # with a comment
  "eth1",
]
wires = ["eth0=eth1"]
xdp = "generic"
zerocopy = "never"
replace = true
on-exit = "keep"
workers = 2
cpus = "5,2-4"
poll = "busy"
umem-frames = 0x1_0000
frame-size = 4096
rx-ring = 64
tx-ring = 1_024
fill-ring = 32768
completion-ring = 4096
bulk-size = 1
bulk-flush = "change"
tx-timer = 0
tx-timer-arm = 'always'
tx-frames = 1
metrics = ""
log-level = "debug"
log-format = "json"
`)
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Ports: []Port{{"eth0", []int{0, 1, 2, 3, 6}}, {"eth1", nil}},
		Wires: []Wire{{"eth0", "eth1"}},
		XDP:   XDPGeneric, Zerocopy: ZerocopyNever, Replace: true, OnExit: ExitKeep,
		Workers: 2, CPUs: []int{5, 2, 3, 4}, Poll: PollBusy,
		UmemFrames: 65536, FrameSize: 4096, RxRing: 64, TxRing: 1024, FillRing: 32768, CompletionRing: 4096,
		BulkSize: 1, BulkFlush: BulkChange, TxTimer: 0, TxTimerArm: ArmAlways, TxFrames: 1,
		LogLevel: LogDebug, LogFormat: LogJSON,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Editors of Windows put a byte order mark in front and end lines with CR LF.
func TestLoadTakesAFileOfAWindowsEditor(t *testing.T) {
	got, err := Load(writeFile(t, "\xef\xbb\xbfports = [\"eth0\", \"eth1\"]\r\nwires = [\"eth0=eth1\"]\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Defaults()
	want.Ports = []Port{{Name: "eth0"}, {Name: "eth1"}}
	want.Wires = []Wire{{"eth0", "eth1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLoadFlagsWinOverTheFile(t *testing.T) {
	path := writeFile(t, "ports = [\"a\", \"b\"]\nwires = [\"a=b\"]\nrx-ring = 512\ntx-ring = 512\nreplace = true\n")
	got, err := Load(path, wired(
		Override{"rx-ring", []string{"256"}}, Override{"replace", []string{"false"}},
		Override{"tx-timer", []string{"250us"}})...)
	if err != nil {
		t.Fatal(err)
	}
	want := Defaults()
	want.Ports = []Port{{Name: "eth0"}, {Name: "eth1"}}
	want.Wires = []Wire{{"eth0", "eth1"}}
	want.RxRing, want.TxRing, want.TxTimer = 256, 512, 250*time.Microsecond
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestLoadRefusesFlags has the whole message for each mistake one can make on the
// command line.
func TestLoadRefusesFlags(t *testing.T) {
	const (
		ports = "; allowed: a device name of 1 to 15 bytes without space, '/', ':' or '=', then nothing or a colon and queues from 0 to 4095 such as 0-3,6"
		rings = "; allowed: a power of two from 64 to 32768"
		times = "; allowed: a time with a unit from 0 to 100ms, such as 5ms or 250us"
		addr  = "; allowed: HOST:PORT with an IP address, localhost or nothing for HOST; or empty"
		cpus  = "; allowed: numbers and ranges from 0 to 8191 such as 2-5,8"
		names = "; allowed: the names of two configured ports with an equals sign between them"
	)
	for _, test := range []struct{ flag, value, want string }{
		{"port", "", `--port "": the name is empty` + ports},
		{"port", "eth0:", `--port eth0:: no queue after the colon; leave the colon out for all queues` + ports},
		{"port", "eth0:0,0", `--port eth0:0,0: queues: 0 is given twice` + ports},
		{"port", "eth0:0-3,2", `--port eth0:0-3,2: queues: 2 is given twice` + ports},
		{"port", "eth0:-1", `--port eth0:-1: queues: "-1" is neither a number nor a range such as 0-3` + ports},
		{"port", "eth0:0,a", `--port eth0:0,a: queues: "a" is neither a number nor a range such as 0-3` + ports},
		{"port", "eth0:0,", `--port eth0:0,: queues: "" is neither a number nor a range such as 0-3` + ports},
		{"port", "eth0: 0", `--port "eth0: 0": queues: " 0" is neither a number nor a range such as 0-3` + ports},
		{"port", "eth0:+1", `--port eth0:+1: queues: "+1" is neither a number nor a range such as 0-3` + ports},
		{"port", "eth0:1-2-3", `--port eth0:1-2-3: queues: "1-2-3" is neither a number nor a range such as 0-3` + ports},
		{"port", "eth0:3-1", `--port eth0:3-1: queues: the range 3-1 ends before it begins` + ports},
		{"port", "eth0:4096", `--port eth0:4096: queues: 4096 is too large: the last one there can be is 4095` + ports},
		{"port", "eth0:0-99999999999999999999", `--port eth0:0-99999999999999999999: queues: 99999999999999999999 is too large: the last one there can be is 4095` + ports},
		{"port", "eth0:0:1", `--port eth0:0:1: queues: "0:1" is neither a number nor a range such as 0-3` + ports},
		{"port", ":0", `--port :0: the name is empty` + ports},
		{"port", "a/b", `--port a/b: the name has the character '/' in it` + ports},
		{"port", "a b", `--port "a b": the name has the character ' ' in it` + ports},
		{"port", "a\n", `--port "a\n": the name has the character '\n' in it` + ports},
		{"port", "à", `--port "à": the name has the character '\u00a0' in it` + ports},
		{"port", "a=b", `--port a=b: the name has the character '=' in it` + ports},
		{"port", "..", `--port ..: no device can be called ..` + ports},
		{"port", "sixteen-letters-", `--port sixteen-letters-: the name has 16 bytes, a device has at most 15` + ports},
		{"wire", "eth0", `--wire eth0: no equals sign` + names},
		{"wire", "eth0=", `--wire eth0=: port "": the name is empty` + names},
		{"wire", "eth0=eth0", `--wire eth0=eth0: joins port eth0 to itself` + names},
		{"wire", "a=b=c", `--wire a=b=c: port "b=c": the name has the character '=' in it` + names},
		{"xdp", "natve", `--xdp natve: unknown; did you mean native?; allowed: auto, native, generic`},
		{"zerocopy", "yes", `--zerocopy yes: unknown; allowed: prefer, require, never`},
		{"replace", "maybe", `--replace maybe: neither true nor false; allowed: true, false`},
		{"workers", "-1", `--workers -1: too small; allowed: 0 to 8192`},
		{"workers", "two", `--workers two: not a whole number; allowed: 0 to 8192`},
		{"workers", "99999999999999999999", `--workers 99999999999999999999: too large; allowed: 0 to 8192`},
		{"cpus", "0,0", `--cpus 0,0: 0 is given twice` + cpus},
		{"cpus", "8192", `--cpus 8192: 8192 is too large: the last one there can be is 8191` + cpus},
		{"poll", "", `--poll "": unknown; allowed: interrupt, adaptive, busy`},
		{"umem-frames", "4194305", `--umem-frames 4194305: too large; allowed: 0 to 4194304`},
		{"frame-size", "3000", `--frame-size 3000: not one of the sizes; allowed: 2048, 4096`},
		{"frame-size", "1024", `--frame-size 1024: too small; allowed: 2048, 4096`},
		{"rx-ring", "0", `--rx-ring 0: too small` + rings},
		{"rx-ring", "1", `--rx-ring 1: too small` + rings},
		{"tx-ring", "3", `--tx-ring 3: too small` + rings},
		{"tx-ring", "100", `--tx-ring 100: not a power of two` + rings},
		{"fill-ring", "511", `--fill-ring 511: not a power of two` + rings},
		{"completion-ring", "2147483648", `--completion-ring 2147483648: too large` + rings},
		{"bulk-size", "0", `--bulk-size 0: too small; allowed: 1 to 16`},
		{"bulk-size", "17", `--bulk-size 17: too large; allowed: 1 to 16`},
		{"bulk-flush", "sort", `--bulk-flush sort: unknown; allowed: partition, change`},
		{"tx-timer", "5", `--tx-timer 5: not a time` + times},
		{"tx-timer", "-5ms", `--tx-timer -5ms: too small` + times},
		{"tx-timer", "101ms", `--tx-timer 101ms: too large` + times},
		{"tx-timer-arm", "Idle", `--tx-timer-arm Idle: unknown; did you mean idle?; allowed: idle, always`},
		{"tx-frames", "0", `--tx-frames 0: too small; allowed: 1 to 32768`},
		{"tx-frames", "2049", `--tx-frames 2049: more than the TX ring holds; allowed: 1 to 2048 (tx-ring)`},
		{"metrics", "9750", `--metrics 9750: not of the form HOST:PORT` + addr},
		{"metrics", "localhost:http", `--metrics localhost:http: "http" is not a TCP port` + addr},
		{"metrics", ":65536", `--metrics :65536: "65536" is not a TCP port` + addr},
		{"metrics", "router:9750", `--metrics router:9750: "router" is not an IP address` + addr},
		{"umem-frames", "4095", ""}, // the queues are not known
	} {
		t.Run(test.flag+" "+test.value, func(t *testing.T) {
			flags := wired(Override{test.flag, []string{test.value}})
			if test.flag == "port" || test.flag == "wire" {
				flags[map[string]int{"port": 0, "wire": 1}[test.flag]].Values = []string{test.value}
				flags = flags[:2]
			}
			_, err := Load("", flags...)
			if got := text(err); firstLine(got) != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestLoadChecksSettingsAgainstEachOther(t *testing.T) {
	for name, test := range map[string]struct {
		flags []Override
		want  []string
	}{
		"no-ports": {nil, []string{
			`no ports: name two with --port, or with the key ports in the file, and join them with --wire`,
		}},
		"port-twice": {
			[]Override{{"port", []string{"a:0", "b", "a:1"}}, {"wire", []string{"a=b"}}},
			[]string{`--port a:1: port a is given twice; list all its queues at once, as in a:0-3,6`},
		},
		"unknown-port": {
			[]Override{{"port", []string{"eth0", "eth1"}}, {"wire", []string{"eth0=eth2", "wan=eth1"}}},
			[]string{
				`--wire eth0=eth2: no port eth2 is configured; did you mean eth0?`,
				`--wire wan=eth1: no port wan is configured; add --port wan`,
			},
		},
		"two-wires": {
			[]Override{{"port", []string{"a", "b", "c"}}, {"wire", []string{"a=b", "c=a"}}},
			[]string{`--wire c=a: port a is in the wire a=b already; a port is in one wire only`},
		},
		"no-wire": {
			[]Override{{"port", []string{"a", "b", "c:0-3"}}, {"wire", []string{"a=b"}}},
			[]string{`--port c:0-3: port c is in no wire; join it to another port, as in --wire c=OTHER`},
		},
		"too-few-cpus": {
			wired(Override{"workers", []string{"3"}}, Override{"cpus", []string{"0-1"}}),
			[]string{`--workers 3: more than the 2 CPUs of cpus; allowed: 0 to 2, or more CPUs`},
		},
		"default-too-large": {
			// No flag was given for what is wrong.
			wired(Override{"tx-ring", []string{"64"}}, Override{"tx-frames", []string{"65"}}),
			[]string{`--tx-frames 65: more than the TX ring holds; allowed: 1 to 64 (tx-ring)`},
		},
		"too-few-frames": {
			[]Override{{"port", []string{"a:0-1", "b:0"}}, {"wire", []string{"a=b"}}, {"umem-frames", []string{"95"}}},
			[]string{`--umem-frames 95: too few for 3 queues; allowed: 0 (as many as the fill and TX rings hold), or 96 to 4194304`},
		},
		"rings-too-large": {
			[]Override{{"port", []string{"a:0-4095", "b:0"}}, {"wire", []string{"a=b"}}},
			[]string{`umem-frames 0 (the default): the fill and TX rings of 4097 queues hold 16781312 frames, but a UMEM has at most 4194304: use smaller rings or fewer queues`},
		},
		"all-at-once": {
			wired(Override{"xdp", []string{"skb"}}, Override{"rx-ring", []string{"x"}}, Override{"poll", []string{"spin"}}),
			[]string{
				`--rx-ring x: not a whole number; allowed: a power of two from 64 to 32768`,
				`--xdp skb: unknown; allowed: auto, native, generic`,
				`--poll spin: unknown; allowed: interrupt, adaptive, busy`,
			},
		},
		"unreadable-port-is-one-mistake": {
			[]Override{{"port", []string{"a:x", "b"}}, {"wire", []string{"a=b"}}},
			[]string{`--port a:x: queues: "x" is neither a number nor a range such as 0-3`},
		},
		"unknown-setting": {
			wired(Override{"color", nil}),
			[]string{`unknown setting "color"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load("", test.flags...)
			got := strings.Split(text(err), "\n")
			if len(got) != len(test.want) {
				t.Fatalf("got %d errors, want %d:\n%s", len(got), len(test.want), text(err))
			}
			for i, want := range test.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("got  %s\nwant %s", got[i], want)
				}
			}
		})
	}
}

func TestLoadRefusesFiles(t *testing.T) {
	const head = "ports = [\"a\", \"b\"]\nwires = [\"a=b\"]\n"
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"unknown-key":     {head + "rx-rings = 1", []string{`:3: unknown key rx-rings; did you mean rx-ring?`}},
		"no-near-key":     {head + "colour = 1", []string{`:3: unknown key colour`}},
		"dotted-key":      {head + "rx.ring = 1", []string{`:3: unknown key rx.ring; did you mean rx-ring?`}},
		"table":           {head + "\n[rings]\nrx-ring = 1", []string{`:4: unknown table rings: there are no tables, all keys stand at the top`}},
		"array-table":     {head + "[[port]]", []string{`:3: unknown table port: there are no tables, all keys stand at the top`}},
		"utf-8-mark":      {"\xef\xbb\xbf" + head + "rx-ring = 100", []string{`:3: rx-ring 100: not a power of two`}},
		"second-mark":     {"\xef\xbb\xbf\xef\xbb\xbf" + head, []string{`:1: `}},
		"utf-16":          {"\xff\xfep\x00", []string{`:1: the byte order mark of UTF-16: the file must be in UTF-8`}},
		"utf-16-swapped":  {"\xfe\xff\x00p", []string{`:1: the byte order mark of UTF-16: the file must be in UTF-8`}},
		"syntax":          {head + "rx-ring = \n", []string{`:3: `}},
		"given-twice":     {head + "rx-ring = 64\ntx-ring = 64\nrx-ring = 64", []string{`:5: `}},
		"wrong-value":     {head + "# why not\nrx-ring = 100", []string{`:4: rx-ring 100: not a power of two; allowed: a power of two from 64 to 32768`}},
		"quoted-number":   {head + `rx-ring = "64"`, []string{`:3: rx-ring "64": not a number; allowed: a power of two from 64 to 32768`}},
		"float":           {head + `rx-ring = 64.0`, []string{`:3: rx-ring 64.0: not a number; allowed: a power of two from 64 to 32768`}},
		"number-for-text": {head + `xdp = 1`, []string{`:3: xdp 1: not a string in quotes; allowed: auto, native, generic`}},
		"quoted-switch":   {head + `replace = "true"`, []string{`:3: replace "true": not true or false without quotes; allowed: true, false`}},
		"time-no-unit":    {head + `tx-timer = 5`, []string{`:3: tx-timer 5: not a string in quotes; allowed: a time with a unit`}},
		"not-an-array":    {"ports = \"a\"\nwires = [\"a=b\"]", []string{`:1: ports "a": not an array of strings; allowed: a device name`}},
		"table-for-value": {head + `xdp = {mode = "auto"}`, []string{`:3: xdp: not a string in quotes; allowed: auto`}},
		"nested-array":    {"ports = [\"b\",\n[\"a\"]]\n#wires = [\"a=b\"]", []string{`:1: ports: not a string in quotes; allowed: a device name`}},
		"line-of-element": {
			"ports = [\n  \"a\",\n  \"b:3-1\",\n]\nwires = [\"a=b\"]",
			[]string{`:3: ports b:3-1: queues: the range 3-1 ends before it begins`},
		},
		"line-of-wire": {
			"ports = [\"a\", \"b\"]\nwires = [\"a=b\",\n\"b=a\"]",
			[]string{`:3: wires b=a: port b is in the wire a=b already`, `:3: wires b=a: port a is in the wire a=b already`},
		},
		"all-at-once": {
			head + "a = 1\nxdp = \"x\"\nb = 2\npoll = 3",
			[]string{`:3: unknown key a`, `:5: unknown key b`, `:6: poll 3: not a string`, `:4: xdp x: unknown`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, test.text)
			_, err := Load(path)
			got := strings.Split(text(err), "\n")
			if len(got) != len(test.want) {
				t.Fatalf("got %d errors, want %d:\n%s", len(got), len(test.want), text(err))
			}
			for i, want := range test.want {
				if !strings.HasPrefix(got[i], path+want) {
					t.Errorf("got  %s\nwant %s%s", got[i], path, want)
				}
			}
		})
	}
}

func TestLoadNamesAFileItCannotRead(t *testing.T) {
	dir := t.TempDir()
	for name, path := range map[string]string{
		"missing": filepath.Join(dir, "none.toml"), "directory": dir, "endless": "/dev/zero",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(path, wired()...)
			if !strings.HasPrefix(text(err), "configuration file: ") || !strings.Contains(text(err), path) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
