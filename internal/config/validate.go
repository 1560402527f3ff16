// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"
)

// Validate returns all that is wrong with a Config, one line each.
func (c *Config) Validate() error {
	return errors.Join(c.validate(nil)...)
}

func (c *Config) validate(from origins) []error {
	v := validator{config: c, from: from, settings: map[string]*Setting{}}
	for _, s := range Settings() {
		v.settings[s.Name] = s
		for i := range s.get(c) {
			if err := s.check(c, i); err != nil {
				v.faults = append(v.faults, fault(s, from.of(s, c, i), err))
			}
		}
	}
	// What follows takes each value on its own for granted.
	if len(v.faults) == 0 {
		v.ports()
		v.wires()
		v.workers()
		v.txFrames()
		v.umem()
	}
	return v.faults
}

// validator checks the settings against each other.
type validator struct {
	config   *Config
	from     origins
	settings map[string]*Setting
	faults   []error
}

// fault adds an error about the i-th value of a setting. What is allowed depends
// on other settings here, so the error says it.
func (v *validator) fault(name string, i int, format string, args ...any) {
	origin := v.from.of(v.settings[name], v.config, i)
	v.faults = append(v.faults, fmt.Errorf("%s: %w", origin, fmt.Errorf(format, args...)))
}

// broken says that a setting has values that could not be read. They have their
// faults already; what is missing without them is not another one.
func (v *validator) broken(name string) bool { return v.from[name].broken }

func (v *validator) ports() {
	if len(v.config.Ports) == 0 && !v.broken("port") {
		v.faults = append(v.faults, errors.New("no ports: name two with --port, or with the key ports in the file, and join them with --wire"))
	}
	seen := map[string]bool{}
	for i, port := range v.config.Ports {
		if seen[port.Name] {
			v.fault("port", i, "port %s is given twice; list all its queues at once, as in %s:0-3,6", port.Name, port.Name)
		}
		seen[port.Name] = true
	}
}

func (v *validator) wires() {
	if v.broken("port") || v.broken("wire") {
		return
	}
	ports := v.portNames()
	wired := map[string]Wire{}
	for i, wire := range v.config.Wires {
		for _, end := range []string{wire.A, wire.B} {
			if other, taken := wired[end]; taken {
				v.fault("wire", i, "port %s is in the wire %s already; a port is in one wire only", end, other)
				continue
			}
			wired[end] = wire
			v.wireEnd(i, end, ports)
		}
	}
	seen := map[string]bool{}
	for i, port := range v.config.Ports {
		if _, ok := wired[port.Name]; !ok && !seen[port.Name] {
			v.fault("port", i, "port %s is in no wire; join it to another port, as in --wire %s=OTHER", port.Name, port.Name)
		}
		seen[port.Name] = true
	}
}

func (v *validator) wireEnd(i int, name string, ports []string) {
	if slices.Contains(ports, name) {
		return
	}
	if near := Nearest(name, ports); near != "" {
		v.fault("wire", i, "no port %s is configured; did you mean %s?", name, near)
		return
	}
	v.fault("wire", i, "no port %s is configured; add --port %s", name, name)
}

func (v *validator) portNames() []string {
	var names []string
	for _, port := range v.config.Ports {
		names = append(names, port.Name)
	}
	return names
}

func (v *validator) workers() {
	workers, cpus := v.config.Workers, len(v.config.CPUs)
	if cpus > 0 && workers > cpus {
		v.fault("workers", 0, "more than the %d CPUs of cpus; allowed: 0 to %d, or more CPUs", cpus, cpus)
	}
}

func (v *validator) txFrames() {
	if c := v.config; c.TxFrames > c.TxRing {
		v.fault("tx-frames", 0, "more than the TX ring holds; allowed: 1 to %d (tx-ring)", c.TxRing)
	}
}

// umem can judge the frames only if every port says which queues it has. For the
// others the daemon asks Frames when it knows.
func (v *validator) umem() {
	queues := 0
	for _, port := range v.config.Ports {
		if port.Queues == nil {
			return
		}
		queues += len(port.Queues)
	}
	if _, err := v.config.Frames(queues); err != nil {
		v.fault("umem-frames", 0, "%w", err)
	}
}
