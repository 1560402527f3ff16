// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strconv"
	"strings"
)

//go:generate go test -run ^TestSampleIsTheCommittedFile$ . -args -update

const sampleHead = `# Configuration of xskfwd. Every setting is here with its default; ports and wires
# have none, and must be given here or on the command line. A flag of "xskfwd run"
# wins over the key of the same name; flags of a list replace the whole list.
# Settings are read once, at start. Keys that are not listed here are errors.
`

// Sample returns a configuration file with every setting and its default.
func Sample() []byte {
	var b strings.Builder
	b.WriteString(sampleHead)
	for _, s := range Settings() {
		b.WriteString("\n")
		for _, line := range s.describe() {
			fmt.Fprintf(&b, "# %s\n", line)
		}
		if s.Kind == List {
			fmt.Fprintf(&b, "#%s = %s\n", s.Key, s.Example)
			continue
		}
		fmt.Fprintf(&b, "%s = %s\n", s.Key, s.toml(s.Default()))
	}
	return []byte(b.String())
}

// toml returns a value as it is written in a file.
func (s *Setting) toml(value string) string {
	if s.Kind == Number || s.Kind == Switch {
		return value
	}
	return strconv.Quote(value)
}

// describe returns the comment for a setting, in lines that fit a terminal.
func (s *Setting) describe() []string {
	text := strings.ToUpper(s.Help[:1]) + s.Help[1:] + "."
	if s.More != "" {
		text += " " + s.More
	}
	return append(wrap(text), wrap("Allowed: "+s.Allowed+".")...)
}

// wrap breaks a text into lines of at most 78 letters, so that with "# " in front
// they fit into 80.
func wrap(text string) []string {
	const width = 78
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len(*last)+1+len(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
