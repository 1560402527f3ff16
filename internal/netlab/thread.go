// SPDX-License-Identifier: Apache-2.0

package netlab

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// OnOwnThread runs f in a goroutine on an OS thread of its own, which dies
// with it: whatever f does to its thread (namespace, CPU affinity) reaches no
// other goroutine. It does not wait for f.
//
// The main thread cannot die and is what /proc/PID describes, so f never runs
// there.
func OnOwnThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		locked := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(locked)
			f()
		}()
		<-locked // while this goroutine occupies the main thread, the other cannot get it
		runtime.UnlockOSThread()
	}()
}
