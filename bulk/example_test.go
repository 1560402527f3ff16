// SPDX-License-Identifier: Apache-2.0

package bulk_test

import (
	"fmt"

	"github.com/xskfwd/xskfwd/bulk"
	"github.com/xskfwd/xskfwd/pagepool"
)

func ExampleFrameBulk() {
	const thisWorker, otherWorker = 0, 1
	table := bulk.NewMemTable()
	var completed []pagepool.Page
	for i, owner := range []int{thisWorker, otherWorker} {
		id := pagepool.MemID(i + 1)
		pool, err := pagepool.New(pagepool.Params{Name: "pool", ID: id, Owner: owner, Provider: newMemory(id, 64)})
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := table.Register(id, bulk.Mem{Pool: pool}); err != nil {
			fmt.Println(err)
			return
		}
		completed = append(completed, pool.Alloc(), pool.Alloc(), pool.Alloc())
	}

	var stats bulk.Stats
	var b bulk.FrameBulk
	b.Init(table, thisWorker, bulk.QueueSize, bulk.Partition, &stats)
	for _, page := range completed {
		b.Return(page, memOf(page))
	}
	b.Flush()

	fmt.Printf("own pool: %+v\n", stats.ByMem[1])
	fmt.Printf("other's pool: %+v\n", stats.ByMem[2])
	fmt.Println("bulks at the end of the poll:", stats.Flushes[bulk.EndOfPoll])
	// Output:
	// own pool: {Cached:3 Ring:0 Released:0 Shared:0}
	// other's pool: {Cached:0 Ring:3 Released:0 Shared:0}
	// bulks at the end of the poll: 2
}
