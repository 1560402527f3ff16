// SPDX-License-Identifier: Apache-2.0

// Package capability holds the table of Linux capabilities that the daemon needs. The systemd unit, the documents and the check at the
// start are all held against this one table.
package capability

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// A Capability is one row of the table. The errors in Without were measured on 6.18, by taking away one capability at a time from the
// forwarder's own start: UMEM, sockets, program, pins, link.
type Capability struct {
	Name    string // as in capabilities(7) and in a unit file
	Bit     uint   // its number
	Needed  Need
	Unit    bool   // whether the systemd unit grants it
	Why     string // what it is for
	Without string // what fails, and how
	Drop    string // from when on the daemon could do without it
}

// Need says when a capability is needed.
type Need uint8

const (
	// Always: no port can be attached without it.
	Always Need = iota
	// Sometimes: Why says when. Its absence is reported where it hurts, with the circumstances, and not at the start.
	Sometimes
)

// Table returns all capabilities the daemon may need. What is not in it is not needed: CAP_PERFMON saves three instructions of Spectre
// hardening in the redirect program (measured: 456 bytes instead of 432) and opens all tracing; CAP_SYS_NICE is not needed to pin
// threads of one's own; CAP_SYS_RESOURCE is not, because nothing raises a limit; CAP_DAC_OVERRIDE is not, because root owns the bpffs.
func Table() []Capability {
	return []Capability{
		{
			Name: "CAP_NET_ADMIN", Bit: unix.CAP_NET_ADMIN, Needed: Always, Unit: true,
			Why:     "to attach the XDP program, make its socket map, set promiscuity and prefer busy polling",
			Without: "the socket map is refused: operation not permitted",
			Drop:    "never: a port that comes back is attached anew, and the stop takes everything off again",
		},
		{
			Name: "CAP_NET_RAW", Bit: unix.CAP_NET_RAW, Needed: Always, Unit: true,
			Why:     "to open AF_XDP sockets",
			Without: "socket(AF_XDP) is refused: operation not permitted",
			Drop:    "never: a port that comes back gets new sockets",
		},
		{
			Name: "CAP_BPF", Bit: unix.CAP_BPF, Needed: Always, Unit: true,
			Why:     "to load the XDP program and its maps",
			Without: "the first map is refused: operation not permitted",
			Drop:    "never: a port that comes back may need a new program",
		},
		{
			Name: "CAP_IPC_LOCK", Bit: unix.CAP_IPC_LOCK, Needed: Sometimes, Unit: true,
			Why:     "to lock the memory of a UMEM that is larger than RLIMIT_MEMLOCK",
			Without: "the UMEM is refused: no buffer space available",
			Drop:    "once the limit is high enough",
		},
		{
			Name: "CAP_SYS_ADMIN", Bit: unix.CAP_SYS_ADMIN, Needed: Sometimes, Unit: false,
			Why:     "to mount a bpffs where there is none; systemd mounts one at /sys/fs/bpf",
			Without: "nothing is pinned, so that fail-to-wire ends with the process",
			Drop:    "once a bpffs is mounted",
		},
	}
}

// ForUnit lists what the unit grants, as CapabilityBoundingSet= and AmbientCapabilities= take it.
func ForUnit() string {
	var names []string
	for _, c := range Table() {
		if c.Unit {
			names = append(names, c.Name)
		}
	}
	return strings.Join(names, " ")
}

// Missing returns what is always needed and not in the set, whose bits are numbered as the capabilities are.
func Missing(set uint64) []Capability {
	var missing []Capability
	for _, c := range Table() {
		if c.Needed == Always && set>>c.Bit&1 == 0 {
			missing = append(missing, c)
		}
	}
	return missing
}

// Effective returns the effective set of the calling thread.
func Effective() (uint64, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var words [2]unix.CapUserData // version 3 fills two
	if err := unix.Capget(&header, &words[0]); err != nil {
		return 0, fmt.Errorf("capabilities: read the effective set: %w", err)
	}
	return uint64(words[1].Effective)<<32 | uint64(words[0].Effective), nil
}

// Check returns an error for each capability that is always needed and not there: its name, what it is for, and how to get it.
func Check() error {
	set, err := Effective()
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range Missing(set) {
		errs = append(errs, fmt.Errorf("%s is missing, needed %s: run as root, or name it in AmbientCapabilities= of the service", c.Name, c.Why))
	}
	return errors.Join(errs...)
}
