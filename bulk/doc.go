// SPDX-License-Identifier: Apache-2.0

// Package bulk returns pages to their pools sixteen at a time.
//
// A completion loop declares a [FrameBulk] on its stack, calls [FrameBulk.Return] for each page that comes home and
// [FrameBulk.Flush] at its end. The FrameBulk gathers pages and gives each pool its share in one call, so that a pool of
// another owner takes its producer lock once a bulk and not once a page:
//
//	var b bulk.FrameBulk
//	b.Init(table, worker, bulk.QueueSize, bulk.Partition, &stats)
//	for _, addr := range completed {
//		b.Return(pageOf(addr), memOf(addr))
//	}
//	b.Flush()
//
// Pages name their memory by a [pagepool.MemID], which a [MemTable] turns into a pool, or into a function for memory that
// has none. How well it works shows in [Stats]: the lengths of the bulks are the pages per lock.
package bulk
