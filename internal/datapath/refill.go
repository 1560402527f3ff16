// SPDX-License-Identifier: Apache-2.0

package datapath

// refill posts pages until FillTarget of them are out: in the fill ring, in the
// driver, or in the RX ring. Bounding what is out, and not the fill ring alone,
// leaves every other queue its share of a small UMEM.
func (q *Queue) refill() {
	out := uint32(q.c.Posted - q.c.RxPackets)
	posted := uint32(0)
	for want := q.fillTarget - out; posted < want; {
		n := q.post(min(want-posted, uint32(len(q.pages))))
		if n == 0 {
			q.c.RefillShort++
			break
		}
		posted += n
	}
	if posted > 0 && q.sock.Fill.NeedWakeup() {
		q.sock.KickRx()
		q.c.FillKicks++
	}
}

// post moves up to n pages from the pool to the fill ring and says how many.
func (q *Queue) post(n uint32) uint32 {
	ring := q.sock.Fill
	n = min(n, ring.Free())
	got := q.pool.AllocBulk(q.pages[:n])
	idx, room := ring.Reserve(uint32(got))
	for i := range room {
		ring.Set(idx+i, q.umem.AddrOf(q.pages[i]))
	}
	ring.Submit(room)
	q.c.Posted += uint64(room)
	return room
}
