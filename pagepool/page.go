// SPDX-License-Identifier: Apache-2.0

package pagepool

// Page names one page of packet memory. Its meaning belongs to the [Provider]; the zero Page is "no page".
type Page uint64

// MemID names the memory a page comes from, so that whoever is done with a page finds its pool. IDs are small and dense,
// for they index tables. 0 is memory of no pool.
type MemID uint32

// Provider is the memory behind a pool: where pages come from and where they go in the end. It is called with batches
// only, from any goroutine, and must not call the pool. It may not keep the slices that it is given.
type Provider interface {
	// AllocPages fills dst from the front with pages that nobody else has, and returns how many.
	AllocPages(dst []Page) int
	// FreePages takes pages back.
	FreePages(pages []Page)
}
