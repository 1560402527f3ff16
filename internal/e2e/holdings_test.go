// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// holds counts what the daemon has of the kernel's: programs and maps, and rings
// of sockets. Other descriptors come and go.
func (r *rig) holds() string {
	r.t.Helper()
	process := fmt.Sprintf("/proc/%d/", r.daemon.Pid())
	entries, err := os.ReadDir(process + "fd")
	if err != nil {
		r.t.Fatal(err)
	}
	open := map[string]int{}
	for _, e := range entries {
		target, err := os.Readlink(process + "fd/" + e.Name())
		if err == nil && strings.HasPrefix(target, "anon_inode:bpf") {
			open[target]++
		}
	}
	maps, err := os.ReadFile(process + "maps")
	if err != nil {
		r.t.Fatal(err)
	}
	return fmt.Sprintf("%v open, %d rings mapped", open, strings.Count(string(maps), "socket:["))
}

// pins begins the path of every pin of the router's ports. A detach may clean up
// after namespaces that are gone as well, which is not this test's affair.
func (r *rig) pins() string {
	r.t.Helper()
	var ns unix.Stat_t
	if err := r.router.Do(func() error { return unix.Stat("/proc/thread-self/ns/net", &ns) }); err != nil {
		r.t.Fatal(err)
	}
	return fmt.Sprintf("/xskfwd/%d-", ns.Ino)
}
