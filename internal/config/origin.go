// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strconv"
	"strings"
)

// origins says where the values of each setting were given, by its name. What is
// missing was not given.
type origins map[string]places

type places struct {
	texts  []string // for each value that could be read
	broken bool     // there were others
}

// of names the i-th value of a setting and the place it was given.
func (o origins) of(s *Setting, c *Config, i int) string {
	if texts := o[s.Name].texts; i < len(texts) {
		return texts[i]
	}
	value := s.Name + " " + shown(s.get(c)[i])
	if o != nil && s.Kind != List {
		value += " (the default)"
	}
	return value
}

// fault is the error for one value.
func fault(s *Setting, origin string, err error) error {
	return fmt.Errorf("%s: %w; allowed: %s", origin, err, s.Allowed)
}

// shown quotes a value unless it is one plain word.
func shown(text string) string {
	plain := func(r rune) bool { return r > ' ' && r < 0x7f && r != '"' && r != '\\' }
	if text != "" && strings.TrimFunc(text, plain) == "" {
		return text
	}
	return strconv.Quote(text)
}
