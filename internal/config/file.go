// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// The marks that some editors put before a text. TOML is UTF-8 and says nothing
// of one.
const (
	markUTF8    = "\xef\xbb\xbf"
	markUTF16LE = "\xff\xfe"
	markUTF16BE = "\xfe\xff"
)

// file reads a configuration file into the loader. A file is flat: one key for
// each setting and no tables. It returns false if the file is not TOML, so that
// nothing is known of it.
func (l *loader) file(name string, data []byte) bool {
	data = bytes.TrimPrefix(data, []byte(markUTF8))
	f := file{loader: l, name: name, lineEnds: lineEnds(data)}
	if line, err := checkSyntax(data); err != nil {
		f.fault(line, "%w", err)
		return false
	}
	// The document is known to be sound. It is parsed again for what a decoder
	// keeps to itself: the line of each value.
	f.parser.Reset(data)
	for f.parser.NextExpression() {
		f.expression(f.parser.Expression())
	}
	if err := f.parser.Error(); err != nil {
		f.fault(len(f.lineEnds)+1, "%w", err)
		return false
	}
	return true
}

// file is one pass over a configuration file.
type file struct {
	*loader
	name     string
	parser   unstable.Parser
	lineEnds []int // offsets of the newlines
	inTable  bool
}

// checkSyntax finds the first thing that is not TOML, such as a key that is
// given twice.
func checkSyntax(data []byte) (line int, err error) {
	if bytes.HasPrefix(data, []byte(markUTF16LE)) || bytes.HasPrefix(data, []byte(markUTF16BE)) {
		return 1, errors.New("the byte order mark of UTF-16: the file must be in UTF-8")
	}
	err = toml.Unmarshal(data, &map[string]any{})
	if err == nil {
		return 0, nil
	}
	line = 1
	var position *toml.DecodeError
	if errors.As(err, &position) {
		line, _ = position.Position()
	}
	return line, errors.New(strings.TrimPrefix(err.Error(), "toml: "))
}

func (f *file) fault(line int, format string, args ...any) {
	f.faults = append(f.faults, fmt.Errorf("%s: %w", f.place(line), fmt.Errorf(format, args...)))
}

func (f *file) place(line int) string { return fmt.Sprintf("%s:%d", f.name, line) }

func lineEnds(data []byte) []int {
	var ends []int
	for offset, b := range data {
		if b == '\n' {
			ends = append(ends, offset)
		}
	}
	return ends
}

func (f *file) line(node *unstable.Node) int {
	return 1 + sort.SearchInts(f.lineEnds, int(node.Raw.Offset))
}

func (f *file) expression(node *unstable.Node) {
	switch node.Kind {
	case unstable.Table, unstable.ArrayTable:
		key, line := f.key(node)
		f.inTable = true // until the end of the file
		f.fault(line, "unknown table %s: there are no tables, all keys stand at the top", shown(key))
	case unstable.KeyValue:
		if !f.inTable {
			f.keyValue(node)
		}
	}
}

// key returns the key of an expression, dots included, and its line.
func (f *file) key(node *unstable.Node) (key string, line int) {
	var parts []string
	for keys := node.Key(); keys.Next(); {
		line = f.line(keys.Node())
		parts = append(parts, string(keys.Node().Data))
	}
	return strings.Join(parts, "."), line
}

func (f *file) keyValue(node *unstable.Node) {
	key, line := f.key(node)
	s := f.setting(key)
	switch {
	case s == nil:
		f.unknownKey(key, line)
	case s.Kind == List:
		f.assign(s, f.values(s, line, node.Value()))
	default:
		f.assign(s, []given{f.value(s, s.Kind, line, node.Value())})
	}
}

func (f *file) setting(key string) *Setting {
	for _, s := range f.table {
		if s.Key == key {
			return s
		}
	}
	return nil
}

func (f *file) unknownKey(key string, line int) {
	var keys []string
	for _, s := range f.table {
		keys = append(keys, s.Key)
	}
	if near := Nearest(key, keys); near != "" {
		f.fault(line, "unknown key %s; did you mean %s?", shown(key), near)
		return
	}
	f.fault(line, "unknown key %s", shown(key))
}

// values returns the elements of an array.
func (f *file) values(s *Setting, line int, node *unstable.Node) []given {
	if node.Kind != unstable.Array {
		return []given{f.wrongType(s, line, node, "an array of strings")}
	}
	var values []given
	for elements := node.Children(); elements.Next(); {
		element := elements.Node()
		if element.Kind != unstable.Array { // an array has no place of its own
			line = f.line(element)
		}
		values = append(values, f.value(s, Text, line, element))
	}
	return values
}

// value returns a TOML value as it would be written on a command line.
func (f *file) value(s *Setting, kind Kind, line int, node *unstable.Node) given {
	text := string(node.Data)
	switch {
	case kind == Number && node.Kind == unstable.Integer:
		n, _ := strconv.ParseInt(text, 0, 64) // it can be read: the document is sound
		text = strconv.FormatInt(n, 10)
	case kind == Number:
		return f.wrongType(s, line, node, "a number")
	case kind == Switch && node.Kind == unstable.Bool:
	case kind == Switch:
		return f.wrongType(s, line, node, "true or false without quotes")
	case kind == Duration && node.Kind == unstable.Integer && text == "0":
	case node.Kind != unstable.String:
		return f.wrongType(s, line, node, "a string in quotes")
	}
	return given{text: text, origin: fmt.Sprintf("%s: %s %s", f.place(line), s.Key, shown(text))}
}

func (f *file) wrongType(s *Setting, line int, node *unstable.Node, want string) given {
	origin := fmt.Sprintf("%s: %s", f.place(line), s.Key)
	if node.Kind != unstable.Array && node.Kind != unstable.InlineTable {
		origin += " " + f.source(node)
	}
	return given{origin: origin, err: errors.New("not " + want)}
}

// source returns a value as it is written in the file, or the first line of it.
func (f *file) source(node *unstable.Node) string {
	first, _, _ := strings.Cut(string(f.parser.Raw(node.Raw)), "\n")
	return first
}
