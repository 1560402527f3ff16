// SPDX-License-Identifier: Apache-2.0

package napi

// txWord is the state of a TxTimer in its low bits and the count of its cancellations in
// the rest, in one word so that both change at once. It changes by compare-and-swap along
// the transitions below, which the model test explores as well.
type txWord uint64

const (
	txIdle    txWord = iota // not started
	txRunning               // armed: its expiry will schedule
	txStale                 // cancelled, but what the kernel started still runs
	txFiring                // the loop is counting an expiry; only it leaves this state
	txStates

	txMask   = txStates - 1
	txCancel = txStates // one cancellation
)

func (w txWord) state() txWord { return w & txMask }

func (w txWord) to(state txWord) txWord { return w&^txMask | state }

func (w txWord) cancellations() uint64 { return uint64(w / txCancel) }

// onArm makes sure that the timer runs. call tells the caller to start the kernel's.
//
// In txFiring there is nothing to do: the frames in question were sent before the poll
// that is about to be scheduled, and what it leaves is armed for when it ends.
func onArm(w txWord) (next txWord, call bool) {
	switch w.state() {
	case txIdle:
		return w.to(txRunning), true
	case txStale:
		return w.to(txRunning), false
	default:
		return w, false
	}
}

// onRearm starts the timer anew whatever it does.
func onRearm(w txWord) (next txWord, call bool) {
	switch w.state() {
	case txFiring:
		return w, false
	case txRunning:
		return w + txCancel, true
	default:
		return w.to(txRunning), true
	}
}

// onCancel disarms the timer and lets the kernel's run on.
func onCancel(w txWord) (next txWord, cancelled bool) {
	if w.state() != txRunning {
		return w, false
	}
	return w.to(txStale) + txCancel, true
}

// onExpire takes in an expiry. fire is false if nobody waits for it any more, or if it is
// one too many, as ArmAlways may cause.
func onExpire(w txWord) (next txWord, fire bool) {
	switch w.state() {
	case txRunning:
		return w.to(txFiring), true
	case txStale:
		return w.to(txIdle), false
	default:
		return w, false
	}
}

// onRefused makes idle a timer that the kernel did not start.
func onRefused(w txWord) (next txWord, cancelled bool) {
	switch w.state() {
	case txRunning:
		return w.to(txIdle) + txCancel, true
	case txStale:
		return w.to(txIdle), false
	default:
		return w, false
	}
}
