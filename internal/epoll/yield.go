// SPDX-License-Identifier: Apache-2.0

package epoll

import "golang.org/x/sys/unix"

// Yield gives the CPU to another thread that waits for it, such as the one that runs a
// device's softirqs; it returns at once if there is none. It fits LoopConfig.Yield.
//
// It is an ordinary system call and not a raw one: with another thread ready it may take
// a whole time slice, during which the Go runtime can use our place.
func Yield() {
	unix.SyscallNoError(unix.SYS_SCHED_YIELD, 0, 0, 0)
}
