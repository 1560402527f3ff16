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

// setBusyPoll sets the three options and reads them back.
func setBusyPoll(fd int, want BusyPoll) (got BusyPoll, err error) {
	prefer := 0
	if want.Prefer {
		prefer = 1
	}
	for _, o := range [...]struct {
		name   string
		option int
		value  int
		skip   bool
	}{
		{"SO_PREFER_BUSY_POLL", unix.SO_PREFER_BUSY_POLL, prefer, false},
		{"SO_BUSY_POLL", unix.SO_BUSY_POLL, want.Usecs, false},
		{"SO_BUSY_POLL_BUDGET", unix.SO_BUSY_POLL_BUDGET, want.Budget, want.Budget == 0},
	} {
		if o.skip {
			continue
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, o.option, o.value); err != nil {
			return got, fmt.Errorf("%s to %d: %w", o.name, o.value, err)
		}
	}
	return readBusyPoll(fd)
}

func readBusyPoll(fd int) (got BusyPoll, err error) {
	prefer, err1 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PREFER_BUSY_POLL)
	usecs, err2 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUSY_POLL)
	budget, err3 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUSY_POLL_BUDGET)
	return BusyPoll{Prefer: prefer != 0, Usecs: usecs, Budget: budget}, errors.Join(err1, err2, err3)
}
