// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"fmt"
)

// Check tests every identity of the snapshot and returns what does not hold, all of it, each with its two sides and their numbers.
//
// It is for workers that are idle or stopped. While frames move, two counters of one identity may have been read some packets apart;
// then only CheckCensus has to hold.
func (s *Snapshot) Check() error {
	errs := []error{s.CheckCensus()}
	for i := range s.Umems {
		errs = append(errs, s.Umems[i].checkAtRest(), s.checkPoolsOf(&s.Umems[i]))
	}
	for i := range s.Pools {
		errs = append(errs, s.Pools[i].Check())
	}
	for i := range s.Ports {
		errs = append(errs, s.checkWire(&s.Ports[i]), s.Ports[i].checkTimer())
	}
	return errors.Join(errs...)
}

// CheckCensus tests that the frames of each UMEM add up. That holds at every scrape.
func (s *Snapshot) CheckCensus() error {
	var errs []error
	for i := range s.Umems {
		u := &s.Umems[i]
		var sum int64
		for _, p := range u.Census.places() {
			sum += p.frames
		}
		errs = append(errs, equal("umem "+u.Name, fmt.Sprintf("sum of the census %+v", u.Census), sum, "frames", int64(u.Frames)))
	}
	return errors.Join(errs...)
}

// checkAtRest tests what is true of a census when no worker moves: nothing is below zero, and what a worker still holds it has lost.
func (u *Umem) checkAtRest() error {
	errs := []error{equal("umem "+u.Name, "frames held", u.Census.Held, "what workers at rest hold", 0)}
	for _, p := range u.Census.places() {
		if p.frames < 0 {
			errs = append(errs, fmt.Errorf("umem %s: %d frames in state %s", u.Name, p.frames, p.state))
		}
	}
	return errors.Join(errs...)
}

// checkPoolsOf tests what the census says of the page pools against what the pools say themselves.
func (s *Snapshot) checkPoolsOf(u *Umem) error {
	var cache, ring, inflight int64
	for i := range s.Pools {
		if p := &s.Pools[i]; p.Umem == u.Name {
			cache += int64(p.CacheFrames)
			ring += int64(p.RingFrames)
			inflight += p.Inflight
		}
	}
	object := "umem " + u.Name
	return errors.Join(
		equal(object, "census cache", u.Census.Cache, "sum of cache frames of its pools", cache),
		equal(object, "census ring", u.Census.Ring, "sum of ring frames of its pools", ring),
		equal(object, "frames not free", int64(u.Frames)-u.Census.Free, "sum of inflight frames of its pools", inflight),
	)
}

// Check tests the identities of the pool and of the bulk queue that belongs to it. HandedOut and Returned are what the users of the pool
// counted themselves.
func (p *PagePool) Check() error {
	handed := p.AllocFast + p.AllocRefill + p.AllocSlow
	returned := p.RecycleCached + p.RecycleRing + p.RecycleRingFull + p.RecycleReleasedRefcnt
	outside := int64(handed) - int64(returned-p.RecycleReleasedRefcnt) // a put that left other holders brought nothing home
	object := "page pool " + p.Name
	return errors.Join(
		equal(object, "handed out", p.HandedOut, "alloc fast + refill + slow", handed),
		equal(object, "returned", p.Returned, "recycle cached + ring + ring_full + released_refcnt", returned),
		equal(object, "inflight", p.Inflight, "cache + ring + handed out and not home yet",
			int64(p.CacheFrames)+int64(p.RingFrames)+outside),
		p.Bulk.check(object),
	)
}

// check tests the flushes by reason against the flushes by length.
func (b *Bulk) check(object string) error {
	var flushes, frames uint64
	for length, n := range b.Length {
		flushes += n
		frames += uint64(length) * n
	}
	return errors.Join(
		equal(object, "bulk flushes by reason", b.FlushesFull+b.FlushesPoolChange+b.FlushesPollEnd, "bulk flushes by length", flushes),
		equal(object, "bulk flushed frames", b.FlushedFrames, "sum of the bulk lengths", frames),
		equal(object, "frames of unknown pools", b.Unknown, "what may be lost", 0),
	)
}

// checkWire tests the drop ledger of one direction of a wire: what came in at the port has left at its partner, was dropped for a reason,
// or is on its way. Drops which the kernel made before the RX ring are no part of what came in.
func (s *Snapshot) checkWire(in *Port) error {
	var received, out uint64
	for i := range in.Queues {
		received += in.Queues[i].ReceivePackets
		out += packetsOf(in.Queues[i].ReceiveDrops)
	}
	if in.Partner != "" {
		egress := s.port(in.Partner)
		if egress == nil {
			return fmt.Errorf("port %s: its partner %s is not in the snapshot", in.Name, in.Partner)
		}
		for i := range egress.Queues {
			out += egress.Queues[i].TransmitPackets + packetsOf(egress.Queues[i].TransmitDrops)
		}
	}
	return equal("port "+in.Name, "received", received, "transmitted by the partner + drops + in flight", out+in.InFlight)
}

// packetsOf sums the drops of frames that had been received.
func packetsOf(drops []Drop) uint64 {
	var n uint64
	for _, d := range drops {
		if !d.Unreceived {
			n += d.Packets
		}
	}
	return n
}

func (s *Snapshot) port(name string) *Port {
	for i := range s.Ports {
		if s.Ports[i].Name == name {
			return &s.Ports[i]
		}
	}
	return nil
}

func (p *Port) checkTimer() error {
	t := &p.TxTimer
	return equal("port "+p.Name, "tx timers armed", t.Armed, "fired + cancelled + running", t.Fired+t.Cancelled+t.Running)
}

// equal is nil, or an error that names both sides.
func equal[N uint64 | int64](object, left string, l N, right string, r N) error {
	if l == r {
		return nil
	}
	return fmt.Errorf("%s: %s is %d, but %s is %d", object, left, l, right, r)
}
