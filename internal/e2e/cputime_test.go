// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// tick is USER_HZ, the unit in which the kernel shows CPU time.
const tick = 10 * time.Millisecond

// cpuTime is what the daemon has used so far: utime and stime, the 14th and 15th field.
func (r *rig) cpuTime() time.Duration {
	r.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.daemon.Pid()))
	_, fields, _ := strings.Cut(string(text), ") ")
	var user, system int64
	if err == nil {
		_, err = fmt.Sscan(strings.Join(strings.Fields(fields)[11:13], " "), &user, &system)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return time.Duration(user+system) * tick
}
