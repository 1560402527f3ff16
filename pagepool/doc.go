// SPDX-License-Identifier: Apache-2.0

// Package pagepool recycles pages of packet memory for one owner each.
//
// A [PagePool] belongs to an owner: one goroutine that polls, in the kernel's words one NAPI. The owner takes pages with
// [PagePool.Alloc] and gives them back with [PagePool.Put] through a cache that needs no lock. Everyone else gives pages
// back through a [PtrRing], from which the owner refills its cache. What neither holds lies with the [Provider].
//
//	          Alloc                     Put, direct
//	owner <--------- cache (128, LIFO) <------------ owner
//	                   ^ 64 at a time
//	                   | refill           Put, PutBulk
//	                 ring (1024, FIFO) <------------ any other goroutine
//	                                        |
//	                   ^ 64 at a time       | ring full
//	                   | slow path          v
//	                 Provider <--------------
//
// A page is an opaque number. The package knows nothing of sockets or packets; in xskfwd a page names a chunk of UMEM.
//
// Names, sizes and counters are those of the Linux page pool and ptr_ring, so that what is known about those holds here.
// Three differences: a page with several holders stays in the pool until its last holder puts it, instead of leaving the
// pool; [PagePool.Retire] closes the ring, so that late pages go straight to the provider, instead of being fetched from the
// ring again and again; and there is no NUMA node to be on the wrong side of, so waive stays 0.
//
// Methods marked "Owner:" may be called by the owner only, one at a time. All others may be called by any goroutine.
package pagepool
