// SPDX-License-Identifier: Apache-2.0

package datapath

import "github.com/xskfwd/xskfwd/internal/xsk"

// QueueCounters is what one Queue counts. All of it is written by the worker
// that polls the queue and copied into the worker's Cut; nothing here is
// atomic and nothing here is shared.
type QueueCounters struct {
	// Received frames and bytes taken off this queue's RX ring.
	RxPackets, RxBytes uint64
	// Frames and bytes of those that were handed to the egress TX ring. What
	// the kernel refused afterwards is included here and in Drops as well.
	TxPackets, TxBytes uint64
	// Drops of frames received on this queue, by reason, but for DropRefused:
	// what the kernel refused is in Kicks and Retries, by TX ring.
	Drops [DropReasons]uint64
	// Posted pages: handed to the fill ring.
	Posted uint64
	// Completed frames of this queue's TX ring, and those among them whose
	// address is no frame that was being sent (counted and left alone).
	Completed, BadCompletions uint64
	// RefillShort counts polls in which the pool had fewer pages than the fill
	// ring had room for.
	RefillShort uint64
	// Kicks of the egress TX ring, and retries: kicks of this queue's own.
	Kicks, Retries KickCounters
	// FillKicks are wake-ups of the driver for the fill ring.
	FillKicks uint64
	// TxFull and TxPartial are batches handed over: as long as a poll may be,
	// and shorter ones.
	TxFull, TxPartial uint64
}

// KickCounters counts TX wake-ups: system calls made, frames the kernel refused
// to send in them, and the result with which each series of calls ended.
type KickCounters struct {
	Calls    uint64 // sendto system calls
	Refused  uint64 // frames completed and not sent: EBUSY
	Drained  uint64 // the ring was empty afterwards
	Again    uint64 // the kernel wants completions reaped or memory first
	LinkDown uint64 // ENETDOWN: frames stay in the ring
	Gone     uint64 // the device is gone, the socket is of no use any more
	Failed   uint64 // any other errno
	Unneeded uint64 // the driver's need-wakeup flag was clear: no call made
}

// count adds what came of one kick.
func (k *KickCounters) count(r xsk.KickResult) {
	k.Calls += uint64(r.Calls)
	k.Refused += uint64(r.Refused)
	switch r.State {
	case xsk.Drained:
		k.Drained++
	case xsk.Again:
		k.Again++
	case xsk.LinkDown:
		k.LinkDown++
	case xsk.Gone:
		k.Gone++
	default:
		k.Failed++
	}
}

// Add adds the counts of another ring, or of another transmitter of the same.
func (k *KickCounters) Add(o *KickCounters) {
	k.Calls += o.Calls
	k.Refused += o.Refused
	k.Drained += o.Drained
	k.Again += o.Again
	k.LinkDown += o.LinkDown
	k.Gone += o.Gone
	k.Failed += o.Failed
	k.Unneeded += o.Unneeded
}

// Dropped is the sum of all reasons: frames whose page came home without having
// been on a TX ring.
func (c *QueueCounters) Dropped() uint64 {
	var n uint64
	for _, d := range c.Drops {
		n += d
	}
	return n
}
