// SPDX-License-Identifier: Apache-2.0

package napi

import (
	"errors"
	"fmt"
	"time"
)

// Mode is what a loop does when no instance has work.
type Mode uint8

const (
	Adaptive  Mode = iota // look on for AdaptiveWindow after the last packet, then sleep
	Interrupt             // sleep at once
	Busy                  // never sleep
	modes
)

// String returns the mode's name as the configuration knows it.
func (m Mode) String() string {
	names := [modes]string{"adaptive", "interrupt", "busy"}
	if m < modes {
		return names[m]
	}
	return "unknown"
}

const (
	// DefaultBudget is how many packets a round may take, the kernel's
	// netdev_budget. Smaller: the end-of-round work weighs more. Larger: timers and
	// the control plane wait longer.
	DefaultBudget = 300
	// DefaultTimeLimit is how long a round may last, the kernel's
	// netdev_budget_usecs at HZ=1000.
	DefaultTimeLimit = 2 * time.Millisecond
	// DefaultAdaptiveWindow is how long an adaptive loop looks on after a packet.
	// Whoever looks on for as long as a wake-up costs pays at most twice what one
	// who knew the future would. A wake-up across CPUs of a virtual machine was
	// measured at up to 86 µs a round trip, about half of that one way. Smaller:
	// the next packet of a conversation pays that wake-up. Larger: a lone packet
	// costs that much CPU (1000 packets a second cost 5% of one).
	DefaultAdaptiveWindow = 50 * time.Microsecond
	// DefaultEventInterval is how long a loop with packets may leave the Waiter unasked.
	// Rings are looked at without it, so it delays only timers (milliseconds) and sources
	// without a Pending. Smaller: system calls that find nothing, 1.8 µs of CPU each where
	// they were measured. Larger: a timer of 5 ms is late by more than a tenth.
	DefaultEventInterval = 500 * time.Microsecond
)

// LoopConfig is what a Loop is made of. Zero values mean the defaults.
type LoopConfig struct {
	Waiter         Waiter // required
	Clock          Clock  // nil = Monotonic
	Mode           Mode
	AdaptiveWindow time.Duration
	EventInterval  time.Duration
	Budget         int
	TimeLimit      time.Duration

	// The callbacks run on the loop's thread; nil = none.

	// EndOfRound is called after every round, and now and then while the loop looks on
	// without work.
	EndOfRound func()
	// BeforeSleep is called before the loop blocks.
	BeforeSleep func()
	// Yield is called for every look that found nothing to do. It gives way to
	// whoever needs the CPU, such as the device's softirq on a one-core router, or
	// drives the device itself.
	Yield func()
}

// withDefaults fills in what was left out and refuses what makes no sense.
func (c LoopConfig) withDefaults() (LoopConfig, error) {
	switch {
	case c.Waiter == nil:
		return c, errors.New("napi loop: no waiter")
	case c.Mode >= modes:
		return c, fmt.Errorf("napi loop: mode %d: unknown", c.Mode)
	case c.AdaptiveWindow < 0, c.EventInterval < 0, c.TimeLimit < 0, c.Budget < 0:
		return c, fmt.Errorf("napi loop: window %v, event interval %v, time limit %v, budget %d: must not be negative",
			c.AdaptiveWindow, c.EventInterval, c.TimeLimit, c.Budget)
	}
	if c.Clock == nil {
		c.Clock = Monotonic()
	}
	if c.AdaptiveWindow == 0 {
		c.AdaptiveWindow = DefaultAdaptiveWindow
	}
	if c.EventInterval == 0 {
		c.EventInterval = DefaultEventInterval
	}
	if c.TimeLimit == 0 {
		c.TimeLimit = DefaultTimeLimit
	}
	if c.Budget == 0 {
		c.Budget = DefaultBudget
	}
	for _, callback := range []*func(){&c.EndOfRound, &c.BeforeSleep, &c.Yield} {
		if *callback == nil {
			*callback = func() {}
		}
	}
	return c, nil
}
