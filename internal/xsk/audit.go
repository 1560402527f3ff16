// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"sync/atomic"

	"github.com/xskfwd/xskfwd/pagepool"
)

// PagesOf finds all pages that the pool id has of this UMEM, wherever they are:
// in its cache, in its ring, in somebody's hands, or with the kernel. It looks
// at every chunk. Once the sockets are closed and the pool is flushed, what it
// finds is what the kernel had and will not give back by a ring any more.
//
// It is exact only while nobody allocates or frees.
func (u *Umem) PagesOf(id pagepool.MemID) []pagepool.Page {
	var pages []pagepool.Page
	for i := range u.owners {
		if atomic.LoadUint32(&u.owners[i]) == uint32(id) {
			pages = append(pages, u.pageOf(uint64(i)<<u.shift))
		}
	}
	return pages
}
