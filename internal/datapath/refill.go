// SPDX-License-Identifier: Apache-2.0

package datapath

// refill posts pages until FillTarget of them are out: in the fill ring, in the
// driver, or in the RX ring. Bounding what is out, and not the fill ring alone,
// leaves every other queue its share of a small UMEM.
//
// It reports whether so many are out, and not as few as the pool had.
func (q *Queue) refill() bool {
	want := int64(q.fillTarget) - q.posted()
	if want <= 0 {
		return true
	}
	left := want
	for left > 0 {
		n := q.post(uint32(min(left, Weight)))
		if n == 0 {
			break
		}
		left -= int64(n)
	}
	if left < want && q.sock.Fill.NeedWakeup() {
		q.sock.KickRx()
		q.c.FillKicks++
	}
	return left <= 0
}

// posted is how many pages are out. Signed, so that a kernel which gives more
// than it got makes it negative and not huge.
func (q *Queue) posted() int64 { return int64(q.c.Posted - q.c.RxPackets) }

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
