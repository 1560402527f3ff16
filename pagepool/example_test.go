// SPDX-License-Identifier: Apache-2.0

package pagepool_test

import (
	"context"
	"fmt"

	"github.com/xskfwd/xskfwd/pagepool"
)

// shelf is a memory of pages for one goroutine.
type shelf []pagepool.Page

func (s *shelf) AllocPages(dst []pagepool.Page) int {
	n := copy(dst, *s)
	*s = (*s)[n:]
	return n
}

func (s *shelf) FreePages(pages []pagepool.Page) { *s = append(*s, pages...) }

func ExamplePagePool() {
	memory := shelf{0x1001, 0x2001, 0x3001, 0x4001}
	pool, err := pagepool.New(pagepool.Params{Name: "eth0-0", ID: 1, Provider: &memory})
	if err != nil {
		fmt.Println(err)
		return
	}
	a, b := pool.Alloc(), pool.Alloc()
	fmt.Printf("%+v\n", pool.Put(a, true))  // by the owner, in its poll
	fmt.Printf("%+v\n", pool.Put(b, false)) // by somebody else
	fmt.Println("in flight:", pool.Inflight(), "with the provider:", len(memory))

	err = pool.Destroy(context.Background())
	fmt.Println("in flight:", pool.Inflight(), "with the provider:", len(memory), err)
	// Output:
	// {Cached:1 Ring:0 Released:0 Shared:0}
	// {Cached:0 Ring:1 Released:0 Shared:0}
	// in flight: 4 with the provider: 0
	// in flight: 0 with the provider: 4 <nil>
}

func ExamplePtrRing() {
	ring, err := pagepool.NewPtrRing(3)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ring.ProduceBulk([]pagepool.Page{1, 2, 3, 4}), ring.Full())
	fmt.Println(ring.Consume(), ring.Produce(4))
	over, _ := ring.Resize(2)
	fmt.Println(over, ring.Cleanup())
	// Output:
	// 3 true
	// 1 true
	// [4] [2 3]
}

func ExampleRefs() {
	refs, err := pagepool.NewRefs(0x1001, 0x1000, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, err := pagepool.New(pagepool.Params{Name: "eth0-0", Refs: refs, Provider: &shelf{0x1001, 0x2001, 0x3001, 0x4001}})
	if err != nil {
		fmt.Println(err)
		return
	}
	page := pool.Alloc()
	refs.Get(page) // the frame goes to two ports
	fmt.Printf("%+v\n", pool.Put(page, false))
	fmt.Printf("%+v\n", pool.Put(page, false))
	// Output:
	// {Cached:0 Ring:0 Released:0 Shared:1}
	// {Cached:0 Ring:1 Released:0 Shared:0}
}
