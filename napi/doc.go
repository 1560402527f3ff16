// SPDX-License-Identifier: Apache-2.0

// Package napi runs poll instances the way the kernel's NAPI runs a network
// device: an event schedules an instance, the instance is polled until it finds
// nothing more, and only then do events count again.
//
// It knows no packets, sockets or system calls. A [Napi] calls a [Poller], a
// [Loop] runs the instances of one worker on one thread and sleeps in a [Waiter],
// and a [TxTimer] brings transmitted frames home when no poll would do it.
//
//	event, timer, doorbell        Loop (one thread)
//	        |                          |
//	    Schedule --> inbox --> poll list --> Poll(weight)
//	                               ^            |
//	                               |            +-- whole weight used, or MISSED: to the tail
//	                               |            +-- else: complete, events count again
//	                               +----------------- Pending() looked at before sleeping
//
// Three promises hold together so that no wake-up is lost:
//
//   - Whoever sets SCHED, and nobody else, puts the instance on a list. A schedule
//     that comes too late to win sets MISSED, and the instance is polled once more.
//   - The loop announces that it sleeps before it looks a last time at the inbox and
//     at every instance; who schedules pushes first and looks for the announcement
//     afterwards. One of the two sees the other.
//   - Events are edges that stay recorded in the Waiter until it is asked, so what
//     happens between the last look and the sleep ends the sleep at once.
package napi
