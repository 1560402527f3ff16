// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Port is a network device and those of its queues that are forwarded.
type Port struct {
	Name   string
	Queues []int // ascending; nil = all the device has
}

// ParsePort reads NAME or NAME:QUEUES.
func ParsePort(text string) (Port, error) {
	// No device can have a colon in its name, so the first one ends it.
	name, queues, some := strings.Cut(text, ":")
	port := Port{Name: name}
	if err := checkPortName(name); err != nil {
		return Port{}, err
	}
	if !some {
		return port, nil
	}
	if queues == "" {
		return Port{}, errors.New("no queue after the colon; leave the colon out for all queues")
	}
	numbers, err := parseNumbers(queues, MaxQueues)
	if err != nil {
		return Port{}, fmt.Errorf("queues: %w", err)
	}
	slices.Sort(numbers)
	port.Queues = numbers
	return port, nil
}

// String returns the port as ParsePort reads it.
func (p Port) String() string {
	if p.Queues == nil {
		return p.Name
	}
	return p.Name + ":" + formatNumbers(p.Queues)
}

func (p Port) check() error {
	if err := checkPortName(p.Name); err != nil {
		return err
	}
	if p.Queues != nil && len(p.Queues) == 0 {
		return errors.New("an empty queue set")
	}
	if err := checkNumbers(p.Queues, MaxQueues); err != nil {
		return fmt.Errorf("queues: %w", err)
	}
	return nil
}

// checkPortName accepts what the kernel accepts for a device, but for the equals
// sign: a wire could not be written with it.
func checkPortName(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty")
	case len(name) > MaxPortName:
		return fmt.Errorf("the name has %d bytes, a device has at most %d", len(name), MaxPortName)
	case name == "." || name == "..":
		return fmt.Errorf("no device can be called %s", name)
	}
	for _, b := range []byte(name) {
		if !inPortName(b) {
			return fmt.Errorf("the name has the character %q in it", rune(b))
		}
	}
	return nil
}

// inPortName goes byte by byte, as the kernel does. 0xa0 is a space there, also
// as the second byte of a UTF-8 letter.
func inPortName(b byte) bool {
	switch b {
	case '/', ':', '=', ' ', 0x7f, 0xa0:
		return false
	}
	return b > ' '
}

// Wire joins two ports: what one receives the other sends, both ways.
type Wire struct {
	A, B string
}

// ParseWire reads A=B.
func ParseWire(text string) (Wire, error) {
	a, b, ok := strings.Cut(text, "=")
	if !ok {
		return Wire{}, errors.New("no equals sign")
	}
	wire := Wire{A: a, B: b}
	return wire, wire.check()
}

// String returns the wire as ParseWire reads it.
func (w Wire) String() string { return w.A + "=" + w.B }

func (w Wire) check() error {
	for _, name := range []string{w.A, w.B} {
		if err := checkPortName(name); err != nil {
			return fmt.Errorf("port %q: %w", name, err)
		}
	}
	if w.A == w.B {
		return fmt.Errorf("joins port %s to itself", w.A)
	}
	return nil
}
