// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xskfwd/xskfwd/internal/datapath"
)

// destroyTimeout bounds the wait for pages of a pool that is taken down. All
// who could hold one have stopped by then, so waiting longer would bring none.
const destroyTimeout = time.Second

// census adds up where the pages are, pool by pool, and says which pool has a
// page in nobody's place. Exact once the workers have stopped.
func (p *plane) census() error {
	cuts := p.final
	var errs []error
	pooled := int64(0)
	for i := range cuts {
		c := datapath.TakeCensus(i, cuts)
		pooled += c.Sum()
		if lowest(c) < 0 || c.Held != 0 {
			errs = append(errs, fmt.Errorf("page pool %s: census %+v: nobody may hold a page between polls", cuts[i].Pool.Name(), c))
		}
	}
	if free := int64(p.umem.FreeFrames()); free+pooled != int64(p.umem.Frames()) {
		errs = append(errs, fmt.Errorf("umem: %d frames free and %d in pools, but it has %d", free, pooled, p.umem.Frames()))
	}
	return errors.Join(errs...)
}

func lowest(c datapath.Census) int64 {
	return min(c.Cache, c.Ring, c.Fill, c.Rx, c.Tx, c.Done, c.Held)
}

// retire takes a pool down after its socket is closed. The pages that were with
// the kernel come back by no ring; they are found in the UMEM's own table, and
// there must be exactly as many as the counters say were out.
func (p *plane) retire(u *unit) error {
	u.pool.Retire()
	left := p.umem.PagesOf(u.id)
	var errs []error
	if out, ok := p.outWith(u); ok && out != len(left) {
		errs = append(errs, fmt.Errorf("page pool %s: %d pages were with the kernel by count, %d are missing from the pool", u.pool.Name(), out, len(left)))
	}
	u.pool.PutBulk(left, true)
	ctx, cancel := context.WithTimeout(context.Background(), destroyTimeout)
	defer cancel()
	return errors.Join(append(errs, u.pool.Destroy(ctx))...)
}

// outWith is how many of the unit's pages were not in its pool when the workers
// stopped. Not known for a unit that never ran.
func (p *plane) outWith(u *unit) (int, bool) {
	for i := range p.final {
		if p.final[i].Pool == u.pool {
			c := datapath.TakeCensus(i, p.final)
			return int(c.Fill + c.Rx + c.Tx + c.Done + c.Held), true
		}
	}
	return 0, false
}
