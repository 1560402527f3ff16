// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// ErrOccupied: an XDP program that is not ours is on the interface.
var ErrOccupied = errors.New("another XDP program is attached")

// attachment is the XDP program on an interface, whoever put it there.
type attachment struct {
	program ebpf.ProgramID // 0: none
	mode    Mode           // empty: offloaded, or several at once
	present bool
}

func attachedTo(ifindex int) (attachment, error) {
	l, err := netlink.LinkByIndex(ifindex)
	if err != nil {
		return attachment{}, fmt.Errorf("look up interface index %d: %w", ifindex, err)
	}
	x := l.Attrs().Xdp
	if x == nil || !x.Attached {
		return attachment{}, nil
	}
	modes := map[uint32]Mode{nl.XDP_ATTACHED_DRV: Native, nl.XDP_ATTACHED_SKB: Generic}
	return attachment{program: ebpf.ProgramID(x.ProgId), mode: modes[x.AttachMode], present: true}, nil
}

// programName needs CAP_SYS_ADMIN; without it, or without the program, it is empty.
func programName(id ebpf.ProgramID) string {
	program, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return ""
	}
	defer program.Close()
	info, err := program.Info()
	if err != nil {
		return ""
	}
	return info.Name
}

func (a attachment) String() string {
	mode, name := a.mode, programName(a.program)
	if mode == "" {
		mode = "offloaded or several modes"
	}
	switch name {
	case "":
		return fmt.Sprintf("program %d, %s (name not readable)", a.program, mode)
	case redirectProgXskfwdRedirect:
		return fmt.Sprintf("program %d %q, %s; another xskfwd runs on it (stop it), or left it behind (run xskfwd detach)", a.program, name, mode)
	}
	return fmt.Sprintf("program %d %q, %s", a.program, name, mode)
}

// makeRoom refuses the interface when a program is on it, or removes that
// program when told to.
func (p *Port) makeRoom() error {
	on, err := attachedTo(p.opts.Ifindex)
	if err != nil || !on.present {
		return err
	}
	if !p.opts.Replace {
		return fmt.Errorf("%w: %s: remove it, or use --replace", ErrOccupied, on)
	}
	if err := evict(p.opts.Ifindex, on); err != nil {
		return fmt.Errorf("replace %s: %w", on, err)
	}
	return nil
}

// evict removes a foreign program. The kernel refuses (EBUSY) the netlink way
// for a program that is held by a link, so that one is then known to exist.
func evict(ifindex int, on attachment) error {
	if on.mode == "" {
		return errors.New("only a native or generic program can be replaced")
	}
	err := setXDP(ifindex, -1, on.mode)
	if errors.Is(err, unix.EBUSY) {
		return breakLink(ifindex, on.program)
	}
	return err
}

// breakLink detaches the link that holds a program on an interface. Link and
// interface are matched by index and program, since the kernel does not tell
// the namespace: with two candidates there is no knowing which one is meant.
func breakLink(ifindex int, program ebpf.ProgramID) error {
	var candidates []link.Link
	defer func() {
		for _, l := range candidates {
			l.Close()
		}
	}()
	var it link.Iterator
	defer it.Close()
	for it.Next() {
		info, err := it.Link.Info()
		if err != nil || info.XDP() == nil {
			continue
		}
		if int(info.XDP().Ifindex) == ifindex && info.Program == program {
			candidates = append(candidates, it.Take())
		}
	}
	if err := it.Err(); err != nil {
		return err
	}
	if len(candidates) != 1 {
		return fmt.Errorf("%d links fit interface index %d and program %d, want exactly one", len(candidates), ifindex, program)
	}
	return candidates[0].Detach()
}
