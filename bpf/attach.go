// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Attach lets the frames through the program: sockets should be registered by
// now. On an adopted port it only tidies up, the program is attached already.
func (p *Port) Attach() error {
	if err := p.attach(); err != nil {
		return fmt.Errorf("port %s: %w", p.opts.Ifname, err)
	}
	return nil
}

func (p *Port) attach() error {
	if p.objects == nil {
		return os.ErrClosed
	}
	if p.current {
		return p.tidy()
	}
	if p.opts.PinDir == "" {
		return p.hang()
	}
	dir := p.versionDir()
	if err := p.pinObjects(dir); err != nil {
		return errors.Join(err, p.tidy())
	}
	if err := p.hang(); err != nil {
		return errors.Join(err, p.tidy())
	}
	if err := p.pinLink(dir); err != nil {
		return errors.Join(err, p.Detach())
	}
	return p.tidy()
}

func (p *Port) versionDir() string {
	return filepath.Join(p.opts.PinDir, version(p.opts.Queues))
}

// hang puts the program on the interface: without a gap when there is a link
// of ours that takes it, else from scratch.
func (p *Port) hang() error {
	if p.link != nil {
		if p.modeFits() && p.link.Update(p.objects.XskfwdRedirect) == nil {
			p.current = true
			return nil
		}
		if err := p.dropLink(); err != nil {
			return err
		}
	}
	if err := p.makeRoom(); err != nil {
		return err
	}
	return p.attachByMode()
}

// dropLink gives up a link that cannot run this program: its mode is another,
// or the kernel refuses the update (6.18: EINVAL when the programs differ in
// their expected attach type).
func (p *Port) dropLink() error {
	err := errors.Join(p.link.Detach(), p.link.Unpin(), p.link.Close())
	p.link, p.linkDir, p.mode = nil, "", ""
	if err != nil {
		return fmt.Errorf("detach the former program: %w", err)
	}
	return nil
}

func (p *Port) attachByMode() error {
	if p.opts.Mode != Auto {
		return p.attachAs(p.opts.Mode)
	}
	p.fallback = needsGeneric(p.opts.Partner)
	if p.fallback == "" {
		err := p.attachAs(Native)
		if err == nil || !isRefusal(err) {
			return err
		}
		p.fallback = err.Error()
	}
	if err := p.attachAs(Generic); err != nil {
		return fmt.Errorf("%w (generic was tried because: %s)", err, p.fallback)
	}
	return nil
}

func (p *Port) attachAs(mode Mode) error {
	flags := map[Mode]link.XDPAttachFlags{Native: link.XDPDriverMode, Generic: link.XDPGenericMode}
	l, err := link.AttachXDP(link.XDPOptions{
		Program:   p.objects.XskfwdRedirect,
		Interface: p.opts.Ifindex,
		Flags:     flags[mode],
	})
	if err != nil {
		return p.refused(mode, err)
	}
	p.link, p.mode, p.current = l, mode, true
	return nil
}

// pinLink makes the attachment outlive the process. A link that was pinned for
// another version moves.
func (p *Port) pinLink(dir string) error {
	if p.linkDir == dir {
		return nil
	}
	if err := pinOver(p.link, filepath.Join(dir, linkPin)); err != nil {
		return err
	}
	p.linkDir = dir
	return nil
}

// tidy removes all version directories but the one with the link.
func (p *Port) tidy() error {
	if p.opts.PinDir == "" {
		return nil
	}
	dirs, err := versionDirs(p.opts.PinDir)
	errs := []error{err}
	for _, dir := range dirs {
		if dir != p.linkDir {
			_, err := removePins(dir)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Detach takes the program off the interface, removes the pins and lets go of
// everything. It touches nothing but what is ours.
func (p *Port) Detach() error {
	var errs []error
	if p.link != nil {
		errs = append(errs, p.link.Detach())
	}
	if p.lock != nil {
		p.linkDir = ""
		errs = append(errs, p.tidy())
	}
	if err := errors.Join(append(errs, p.Close())...); err != nil {
		return fmt.Errorf("port %s: detach: %w", p.opts.Ifname, err)
	}
	return nil
}

// isRefusal tells a kernel that will not run the program in this mode from one
// that would not in any.
func isRefusal(err error) bool {
	for _, other := range []error{ErrOccupied, os.ErrPermission, unix.ENODEV, unix.EBUSY, unix.EEXIST, unix.EMFILE, unix.ENFILE} {
		if errors.Is(err, other) {
			return false
		}
	}
	return true
}
