// SPDX-License-Identifier: Apache-2.0

// Package metrics turns what the daemon has counted into Prometheus metrics and serves them.
//
// Nothing here counts packets. The workers count in plain structs of their own and publish them once a poll; the daemon copies those
// into a [Snapshot], which is plain data; a [Collector] emits the Snapshot as const metrics when somebody scrapes. So the packet path
// knows nothing of Prometheus, and nothing of a scrape.
//
// A Snapshot can also check itself: [Snapshot.Check] holds the identities which tie the counters together, so that a frame which was
// lost track of is an error with two numbers in it and not a vague feeling. docs/METRICS.md is the reader's side of this package; a
// test compares the two.
package metrics
