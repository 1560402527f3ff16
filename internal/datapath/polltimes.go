// SPDX-License-Identifier: Apache-2.0

package datapath

import "time"

// sampleEvery is one poll of how many is timed: two looks at the clock cost as
// much as eight frames, so timing every poll would show in what it measures.
const sampleEvery = 64

// PollTimeBounds are the upper bounds of the buckets of PollTimes. An empty poll
// takes less than the first; one that takes longer than the last has been
// preempted.
func PollTimeBounds() []time.Duration {
	const us = time.Microsecond
	return []time.Duration{us, 3 * us, 10 * us, 30 * us, 100 * us, 300 * us, time.Millisecond, 3 * time.Millisecond, 10 * time.Millisecond}
}

// pollTimeBuckets is the number of bounds, and one more for what is above all.
const pollTimeBuckets = 10

// PollTimes is a histogram of the duration of polls.
type PollTimes struct {
	Counts [pollTimeBuckets]uint64 // by bound; the last is for longer ones
	Sum    time.Duration
}

func (p *PollTimes) observe(d time.Duration) {
	p.Sum += d
	for i, bound := range PollTimeBounds() {
		if d <= bound {
			p.Counts[i]++
			return
		}
	}
	p.Counts[pollTimeBuckets-1]++
}
