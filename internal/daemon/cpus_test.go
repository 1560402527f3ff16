// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"slices"
	"strings"
	"testing"
)

func TestPlaceWorkersOnTheCPUsThatWereAskedFor(t *testing.T) {
	for _, c := range []struct {
		workers              int
		asked, allowed, want []int
	}{
		{1, nil, []int{0}, []int{0}},
		{2, nil, []int{0, 1, 2, 3}, []int{3, 2}}, // interrupts gather on the lowest
		{3, nil, []int{0, 1}, []int{1, 0, 1}},
		{2, []int{5, 2}, []int{2, 5, 9}, []int{5, 2}},
		{3, []int{2}, []int{2, 5}, []int{2, 2, 2}},
		{2, nil, []int{4, 9}, []int{9, 4}},
	} {
		got, err := placeWorkers(c.workers, c.asked, c.allowed)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%d workers, asked %v of %v: got %v, %v, want %v", c.workers, c.asked, c.allowed, got, err, c.want)
		}
	}
	_, err := placeWorkers(1, []int{2, 7}, []int{2, 3})
	if err == nil || !strings.Contains(err.Error(), "cpu 7") || !strings.Contains(err.Error(), "[2 3]") {
		t.Errorf("a cpu that is not allowed: got %v", err)
	}
}

func TestAllowedCPUsAreThereAndAscending(t *testing.T) {
	cpus, err := allowedCPUs()
	if err != nil || len(cpus) == 0 || !slices.IsSorted(cpus) {
		t.Errorf("got %v, %v", cpus, err)
	}
}
