// SPDX-License-Identifier: Apache-2.0

package napi

// state is the state word of a Napi. It changes by compare-and-swap only, and only
// along the transitions below; the model test explores these same functions.
//
// Busy polling needs no bit of its own: an instance is polled by its loop in every
// mode, so nobody else can ever be inside its poll.
type state uint32

const (
	// stateSched: the instance is on its loop's inbox or list, or being polled.
	// Whoever sets the bit owns the list link and the source until it is cleared.
	stateSched state = 1 << iota
	// stateMissed: somebody tried to schedule while stateSched was set.
	stateMissed
	// stateDisable: no new poll may begin.
	stateDisable
)

// onSchedule sets SCHED, or MISSED if SCHED is set already. won tells the caller
// that it is the one to put the instance on the list.
func onSchedule(s state) (next state, won bool) {
	switch {
	case s&stateDisable != 0:
		return s, false
	case s&stateSched != 0:
		return s | stateMissed, false
	default:
		return s | stateSched, true
	}
}

// onComplete ends a poll. done is false if the instance must be polled again.
func onComplete(s state) (next state, done bool) {
	if s&stateMissed != 0 && s&stateDisable == 0 {
		return s &^ stateMissed, false
	}
	return s &^ (stateSched | stateMissed), true
}

// onDrop takes a disabled instance off the list instead of polling it. done is
// false if it is not, or no longer, disabled and has to be polled.
func onDrop(s state) (next state, done bool) {
	if s&stateDisable == 0 {
		return s, false
	}
	return s &^ (stateSched | stateMissed), true
}

func onDisable(s state) (next state, done bool) { return s | stateDisable, true }

func onEnable(s state) (next state, done bool) { return s &^ stateDisable, true }
