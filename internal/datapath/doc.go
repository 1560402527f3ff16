// SPDX-License-Identifier: Apache-2.0

// Package datapath is the spine of the forwarder: what happens to a frame
// between the RX ring it came in on and the free list its page goes home to.
//
// A Queue serves the four rings of one (port, queue) and is the Poller of one
// napi.Napi. Queue.Poll calls the stages in the order in which things happen,
// one file each:
//
//	clean.go     completions are read and their pages given to a FrameBulk
//	refill.go    pages are posted to the fill ring
//	receive.go   descriptors are taken off the RX ring, up to the budget
//	forward.go   the verdict: frames that may not leave are dropped with a reason
//	transmit.go  frames are handed to the egress TX ring, kicked, timer armed
//
// A stage takes a batch and never calls an earlier one. No stage allocates,
// sends on a channel or calls through an interface for a single packet.
//
// A Worker is one locked OS thread running one napi.Loop; Plan says which
// worker serves which queue and on which TX queue it transmits. The control
// plane never touches a ring: it reads the Cut each worker publishes.
package datapath
