// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// setTxSkbBudget raises what one sendto moves in copy mode, if the kernel has
// the option, and returns what it moves.
func setTxSkbBudget(fd int, want, txEntries uint32) (uint32, error) {
	if want == 0 || txEntries <= minTxSkbBudget {
		return minTxSkbBudget, nil
	}
	budget := min(max(want, minTxSkbBudget), txEntries)
	err := unix.SetsockoptInt(fd, unix.SOL_XDP, unix.XDP_MAX_TX_SKB_BUDGET, int(budget))
	if errors.Is(err, unix.ENOPROTOOPT) {
		return minTxSkbBudget, nil // before 6.18
	}
	if err != nil {
		return 0, fmt.Errorf("set XDP_MAX_TX_SKB_BUDGET to %d: %w", budget, err)
	}
	return budget, nil
}

// readZerocopy asks the kernel which mode a bind ended in.
func readZerocopy(fd int) (bool, error) {
	var opts xdpOptions
	if err := getsockopt(fd, unix.SOL_XDP, unix.XDP_OPTIONS, &opts); err != nil {
		return false, fmt.Errorf("read XDP_OPTIONS: %w", err)
	}
	return opts.flags&unix.XDP_OPTIONS_ZEROCOPY != 0, nil
}

// setBusyPoll sets the three options and reads back the two that the kernel lets
// one read; there is no getter for SO_BUSY_POLL_BUDGET (ENOPROTOOPT, 6.18).
func setBusyPoll(fd int, want BusyPoll) (got BusyPoll, err error) {
	prefer := 0
	if want.Prefer {
		prefer = 1
	}
	set := func(name string, option, value int) {
		if err == nil {
			if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, value); err != nil {
				err = fmt.Errorf("%s to %d: %w", name, value, err)
			}
		}
	}
	set("SO_PREFER_BUSY_POLL", unix.SO_PREFER_BUSY_POLL, prefer)
	set("SO_BUSY_POLL", unix.SO_BUSY_POLL, want.Usecs)
	if want.Budget != 0 {
		set("SO_BUSY_POLL_BUDGET", unix.SO_BUSY_POLL_BUDGET, want.Budget)
	}
	if err != nil {
		return got, err
	}
	preferred, err1 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PREFER_BUSY_POLL)
	usecs, err2 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUSY_POLL)
	return BusyPoll{Prefer: preferred != 0, Usecs: usecs, Budget: want.Budget}, errors.Join(err1, err2)
}
