// SPDX-License-Identifier: Apache-2.0

// Package xsk opens AF_XDP sockets and gives access to their memory: a UMEM
// shared by all sockets of a daemon, and the four rings of each socket.
//
// A [Umem] is a run of equal chunks. [Umem.Provider] hands chunks to page pools
// and takes them back; each chunk carries the number of the pool that holds it,
// so that a completion, which is only an address, finds its pool by one load.
//
// A [Socket] is bound to one queue of one device by [Umem.Open]. Its rings come
// in two kinds, named after what user space is on them: a [Producer] (fill, TX)
// and a [Consumer] (completion, RX). Batches take two calls, look and commit:
// Reserve and Submit, Peek and Release.
//
// A ring belongs to one goroutine at a time and has no lock. Close must not be
// called while another goroutine uses a ring; the counters that other goroutines
// want, [Socket.Statistics] and [Socket.RingEntries], are safe at any time.
//
// This package and its tests are the only places with unsafe in them.
package xsk
