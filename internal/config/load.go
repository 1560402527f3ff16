// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Override is a setting given on the command line, with the values of all its
// flags in order.
type Override struct {
	Name   string
	Values []string
}

// Load reads the file at path, if path is not empty, puts the overrides over it
// and validates the result. A list given on the command line replaces the whole
// list of the file. The error holds one line for each mistake.
func Load(path string, overrides ...Override) (*Config, error) {
	l := newLoader()
	if path != "" {
		data, err := readFile(path)
		if err != nil {
			return nil, fmt.Errorf("configuration file: %w", err)
		}
		if !l.file(path, data) {
			return l.result()
		}
	}
	for _, o := range overrides {
		l.flag(o)
	}
	l.faults = append(l.faults, l.config.validate(l.origins)...)
	return l.result()
}

// Parse reads the text of a file on top of the defaults. The result is not
// validated: a file may leave the ports to the command line. The name is for the
// errors.
func Parse(name string, data []byte) (*Config, error) {
	l := newLoader()
	l.file(name, data)
	return l.result()
}

// loader builds one Config from several layers.
type loader struct {
	config  *Config
	table   []*Setting
	origins origins
	faults  []error
}

func newLoader() *loader {
	return &loader{config: Defaults(), table: Settings(), origins: origins{}}
}

func (l *loader) result() (*Config, error) {
	if len(l.faults) > 0 {
		return nil, errors.Join(l.faults...)
	}
	return l.config, nil
}

// given is one value of a setting and where it was found.
type given struct {
	text   string
	origin string // such as "--rx-ring 100" or "xskfwd.toml:12: rx-ring 100"
	err    error  // it is of the wrong type; text is not valid
}

func (l *loader) flag(o Override) {
	for _, s := range l.table {
		if s.Name != o.Name {
			continue
		}
		var values []given
		for _, text := range o.Values {
			values = append(values, given{text: text, origin: "--" + s.Name + " " + shown(text)})
		}
		l.assign(s, values)
		return
	}
	l.faults = append(l.faults, fmt.Errorf("unknown setting %q", o.Name))
}

// assign gives a setting its values. What cannot be read leaves a fault.
func (l *loader) assign(s *Setting, values []given) {
	places := places{}
	if s.clear != nil {
		s.clear(l.config)
	}
	for _, value := range values {
		err := value.err
		if err == nil {
			err = s.add(l.config, value.text)
		}
		if err != nil {
			l.faults = append(l.faults, fault(s, value.origin, err))
			places.broken = true
			continue
		}
		places.texts = append(places.texts, value.origin)
	}
	l.origins[s.Name] = places
}

// readFile reads a file that may turn out to be endless.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, maxFileBytes)
	}
	return data, nil
}
