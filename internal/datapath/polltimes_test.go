// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"slices"
	"testing"
	"time"
)

func TestPollTimesFallIntoTheirBucket(t *testing.T) {
	bounds := PollTimeBounds()
	if len(bounds) != pollTimeBuckets-1 || !slices.IsSorted(bounds) {
		t.Fatalf("bounds %v: want %d, ascending", bounds, pollTimeBuckets-1)
	}
	var p PollTimes
	var sum time.Duration
	for i, bound := range bounds {
		p.observe(bound)     // in its own bucket
		p.observe(bound + 1) // in the next
		sum += 2*bound + 1
		if p.Counts[i] == 0 || p.Counts[i+1] == 0 {
			t.Errorf("%v and a nanosecond more: counts %v", bound, p.Counts)
		}
	}
	want := [pollTimeBuckets]uint64{1, 2, 2, 2, 2, 2, 2, 2, 2, 1}
	if p.Counts != want || p.Sum != sum {
		t.Errorf("counts %v, sum %v; want %v, %v", p.Counts, p.Sum, want, sum)
	}
}
