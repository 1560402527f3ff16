// SPDX-License-Identifier: Apache-2.0

package napi

import "time"

// Event is what a Waiter saw.
type Event struct {
	Napi   int // index given by Loop.Add; Doorbell = the loop was woken
	Source Source
}

// Doorbell is the index of the event that Waiter.Wake causes.
const Doorbell = -1

// Waiter is where a loop sleeps. Events are edges: one that happens while nobody
// waits stays recorded and is returned by the next Wait.
type Waiter interface {
	// Wait fills evs. It blocks while timeout is below 0, looks only if it is 0.
	// Only the loop's thread calls it. A signal is no reason to return.
	Wait(timeout time.Duration, evs []Event) (int, error)
	// Wake makes the Wait that blocks, or the next one, return. Any goroutine.
	Wake() error
}

// Clock returns monotonic nanoseconds.
type Clock func() int64

// Monotonic returns the runtime's monotonic clock, counted from this call.
func Monotonic() Clock {
	start := time.Now()
	return func() int64 { return int64(time.Since(start)) }
}
