// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"sync/atomic"

	"github.com/xskfwd/xskfwd/pagepool"
)

// Share is a memory provider that gives one pool its share of a UMEM and no
// more. A pool takes 64 pages at a time and keeps what it has, so without a
// bound the first pool of a small UMEM has all of it, and in a large one a pool
// whose frames are stuck on a slow port takes what the other ports need to
// receive.
type Share struct {
	from pagepool.Provider
	// left is how many pages may still be taken. Taken by the pool's owner,
	// given back by anyone.
	left atomic.Int64
}

// NewShare bounds what is taken from a provider to so many pages.
func NewShare(from pagepool.Provider, pages int) *Share {
	s := &Share{from: from}
	s.left.Store(int64(pages))
	return s
}

// AllocPages implements pagepool.Provider. Owner: the pool's owner.
func (s *Share) AllocPages(dst []pagepool.Page) int {
	n := s.from.AllocPages(dst[:max(0, min(int64(len(dst)), s.left.Load()))])
	s.left.Add(-int64(n))
	return n
}

// FreePages implements pagepool.Provider. Any goroutine.
func (s *Share) FreePages(pages []pagepool.Page) {
	s.from.FreePages(pages)
	s.left.Add(int64(len(pages)))
}
