// SPDX-License-Identifier: Apache-2.0

package bulk

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/xskfwd/xskfwd/pagepool"
)

// MaxMemID is the largest number a memory can have. Smaller: fewer pools than (port, queue) pairs on a large router.
// Larger: a table that a wrong number makes huge.
const MaxMemID = 1<<16 - 1

// Mem says how pages of one memory are returned. Exactly one of the two is set.
type Mem struct {
	// Pool takes pages of a page pool, in bulk.
	Pool *pagepool.PagePool
	// Return takes pages of other memory, one by one and at once.
	Return func(pagepool.Page)
}

// MemTable finds a memory by its number. Readers take an immutable snapshot and need no lock; writers copy it.
type MemTable struct {
	// lock is held by writers.
	lock sync.Mutex
	// snapshot is indexed by MemID and never changed, only replaced.
	snapshot atomic.Pointer[[]Mem]
}

// NewMemTable returns an empty table.
func NewMemTable() *MemTable {
	t := new(MemTable)
	// Ordering: none needed; nobody else has the table yet.
	t.snapshot.Store(new([]Mem))
	return t
}

// Register makes id known. Pages of a memory that others may still return must not be registered anew: Unregister first.
func (t *MemTable) Register(id pagepool.MemID, mem Mem) error {
	if err := mem.validate(id); err != nil {
		return err
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	if old := t.lookup(id); old.Pool != nil || old.Return != nil {
		return fmt.Errorf("memory %d: already registered", id)
	}
	t.replace(id, mem)
	return nil
}

// Unregister forgets id; an id that is not known is no error. Call it when no page of the memory is out any more, which for
// a pool is when Destroy has returned nil: pages that come later cannot be returned.
func (t *MemTable) Unregister(id pagepool.MemID) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if int64(id) < int64(t.Len()) {
		t.replace(id, Mem{})
	}
}

// Len returns how many numbers the table spans: all ids that were ever registered are smaller.
func (t *MemTable) Len() int { return len(*t.snapshot.Load()) }

// lookup returns the memory with number id, the zero Mem if there is none.
func (t *MemTable) lookup(id pagepool.MemID) Mem {
	// Ordering: acquire; pairs with the store in replace.
	mems := *t.snapshot.Load()
	if uint64(id) >= uint64(len(mems)) {
		return Mem{}
	}
	return mems[id]
}

// replace publishes a snapshot in which id is mem.
func (t *MemTable) replace(id pagepool.MemID, mem Mem) {
	old := *t.snapshot.Load()
	mems := make([]Mem, max(len(old), int(id)+1))
	copy(mems, old)
	mems[id] = mem
	// Ordering: release; pairs with the load in lookup. A reader sees a snapshot whole.
	t.snapshot.Store(&mems)
}

func (m Mem) validate(id pagepool.MemID) error {
	switch {
	case id > MaxMemID:
		return fmt.Errorf("memory %d: number must be at most %d", id, MaxMemID)
	case (m.Pool != nil) == (m.Return != nil):
		return fmt.Errorf("memory %d: exactly one of pool and return function must be set", id)
	case m.Pool != nil && id == 0:
		return fmt.Errorf("memory 0: is memory of no pool, but page pool %s was given", m.Pool.Name())
	case m.Pool != nil && m.Pool.ID() != id:
		return fmt.Errorf("memory %d: page pool %s has number %d", id, m.Pool.Name(), m.Pool.ID())
	}
	return nil
}
