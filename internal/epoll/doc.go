// SPDX-License-Identifier: Apache-2.0

// Package epoll stands behind napi's interfaces with what Linux has: a Waiter is an
// epoll instance with an eventfd as its doorbell, a Timer is a timerfd in it.
//
// Everything is registered once and edge-triggered. An edge that comes while nobody
// waits stays recorded, so no registration has to change around a sleep; and it need
// not be read away, so that neither the doorbell nor a timer costs a read.
package epoll
