// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// allowedCPUs are the CPUs this process may run on, ascending.
func allowedCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("read cpu affinity: %w", err)
	}
	var cpus []int
	for cpu := 0; len(cpus) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// placeWorkers gives each worker a CPU: those that were asked for, in order, or
// else the allowed ones from the highest down, because interrupts and the
// softirqs of single-queue devices gather on the lowest.
func placeWorkers(workers int, asked, allowed []int) ([]int, error) {
	for _, cpu := range asked {
		if !slices.Contains(allowed, cpu) {
			return nil, fmt.Errorf("--cpus: cpu %d: this process may run on %v", cpu, allowed)
		}
	}
	cpus := make([]int, workers)
	for w := range cpus {
		if len(asked) > 0 {
			cpus[w] = asked[w%len(asked)]
		} else {
			cpus[w] = allowed[len(allowed)-1-w%len(allowed)]
		}
	}
	return cpus, nil
}
