// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// FuzzParsePort checks that what is accepted is valid and survives being written
// and read again.
func FuzzParsePort(f *testing.F) {
	for _, seed := range []string{"eth0", "eth0:0-3,6", "eth0:", "eth0:0,0", "eth0:-1", "eth0:0,a", "eth0:007", "eth0:0-4294967295", "\xa0", ":"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		port, err := ParsePort(text)
		if err != nil {
			return
		}
		if err := port.check(); err != nil {
			t.Fatalf("ParsePort(%q) is not valid: %v", text, err)
		}
		if !slices.IsSorted(port.Queues) {
			t.Fatalf("ParsePort(%q): queues %v are not in order", text, port.Queues)
		}
		again, err := ParsePort(port.String())
		if err != nil || again.Name != port.Name || !slices.Equal(again.Queues, port.Queues) {
			t.Fatalf("ParsePort(%q) = %v, again %v, %v", text, port, again, err)
		}
	})
}

// FuzzParse checks that no file is a surprise: it is read, or each line of the
// error names a line that the file has.
func FuzzParse(f *testing.F) {
	f.Add(string(Sample()))
	for _, seed := range []string{
		"", "rx-ring = 100", "ports = [\"a\", 1, [2], {b = 3}]", "[x]\n[[y]]\nz.\"\\u0000\" = 1", "xdp = '''\n\n'''",
		"tx-timer = 0", "x = 99999999999999999999", "a = 1\na = 2", "\xef\xbb\xbfpoll = \"busy\"\r\n", "d = 1979-05-27T07:32:00Z",
	} {
		f.Add(seed)
	}
	named := regexp.MustCompile(`^x\.toml:([1-9][0-9]*): .`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse("x.toml", []byte(text))
		if err == nil {
			_ = c.Validate() // must not panic
			return
		}
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if !named.MatchString(line) {
				t.Fatalf("no file and line in %q", line)
			}
		}
	})
}
