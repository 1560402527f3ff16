// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

const (
	linkPin = "link"
	progPin = "prog"
)

// A version directory holds the pins below. The link is pinned last and
// removed first.
//
// Invariant: where there is a link, the pinning was completed.
func pinNames() []string {
	return []string{linkPin, progPin, redirectMapCountersMap, redirectMapPartnerMap, redirectMapQidconfMap, redirectMapXsksMap}
}

// version names what may be adopted: the same object with maps of the same size.
func version(queues int) string {
	sum := sha256.Sum256(_RedirectBytes)
	return fmt.Sprintf("%x-q%d", sum[:8], queues)
}

func isVersion(name string) bool {
	ok, _ := regexp.MatchString(`^[0-9a-f]{16}-q[1-9][0-9]*$`, name)
	return ok
}

// pinnedLink is a link of ours as it was found in a version directory.
type pinnedLink struct {
	link.Link
	dir     string // the version directory
	program ebpf.ProgramID
	ifindex int // 0: the device is gone, or the link was detached
}

// versionDirs lists the version directories of a port. Everything else in
// there is somebody else's.
func versionDirs(portDir string) ([]string, error) {
	entries, err := os.ReadDir(portDir)
	if err != nil {
		return nil, fmt.Errorf("read pin directory: %w", err)
	}
	var dirs []string
	for _, e := range entries {
		if e.IsDir() && isVersion(e.Name()) {
			dirs = append(dirs, filepath.Join(portDir, e.Name()))
		}
	}
	return dirs, nil
}

// openLink opens the link of a version directory; nil when there is none, or
// only what is left of one: the pin of another object under its name.
func openLink(dir string) (*pinnedLink, error) {
	path := filepath.Join(dir, linkPin)
	if info, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("pinned link: %w", err)
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a pin (%s)", path, info.Mode().Type())
	}
	l, err := link.LoadPinnedLink(path, nil)
	if errors.Is(err, fs.ErrPermission) || outOfFiles(err) {
		return nil, fmt.Errorf("pinned link %s: %w", path, err)
	}
	if err != nil {
		return nil, nil
	}
	pinned, err := identify(l, dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), l.Close())
	}
	return pinned, nil
}

// identify makes sure that the link is ours.
func identify(l link.Link, dir string) (*pinnedLink, error) {
	info, err := l.Info()
	if err != nil {
		return nil, err
	}
	if info.XDP() == nil {
		return nil, errors.New("is no XDP link, so not ours: left alone")
	}
	if name := programName(info.Program); name != "" && name != redirectProgXskfwdRedirect {
		return nil, fmt.Errorf("belongs to program %d (%s), not ours: left alone", info.Program, name)
	}
	return &pinnedLink{Link: l, dir: dir, program: info.Program, ifindex: int(info.XDP().Ifindex)}, nil
}

// readPins looks for a link of ours on the interface. It adopts link and maps
// when they are of this version, and else keeps the link for Attach to update.
func (p *Port) readPins() error {
	dirs, err := versionDirs(p.opts.PinDir)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		found, err := openLink(dir)
		if err != nil {
			return err
		}
		if found == nil {
			continue
		}
		if err := p.takeLink(found); err != nil {
			return errors.Join(err, found.Close())
		}
	}
	return nil
}

// takeLink keeps the link if it is attached to this interface.
func (p *Port) takeLink(found *pinnedLink) error {
	on, err := attachedTo(p.opts.Ifindex)
	if err != nil {
		return err
	}
	if found.ifindex != p.opts.Ifindex || found.program != on.program {
		return p.passOver(found)
	}
	if p.link != nil { // pinned twice: one name is enough, tidy removes the other
		return found.Close()
	}
	p.link, p.linkDir, p.mode = found.Link, found.dir, on.mode
	if filepath.Base(found.dir) != version(p.opts.Queues) || !p.modeFits() {
		return nil
	}
	objects, err := openObjects(found, p.opts.Queues)
	if err != nil {
		return nil // damaged: replaced like another version
	}
	p.objects, p.adopted, p.current = objects, true, true
	if p.mode == Generic && p.opts.Mode == Auto {
		p.fallback = "found attached in generic mode and adopted; cure: to try native, stop this daemon, run xskfwd detach and start again"
	}
	return nil
}

// passOver deals with a link that is not on this interface: a dead one is
// stale, a live one means that the interface took over another's name.
func (p *Port) passOver(found *pinnedLink) error {
	if found.ifindex != 0 && !p.opts.Replace {
		return fmt.Errorf("pins in %s are in use by interface index %d, which had this name before: run xskfwd detach first", found.dir, found.ifindex)
	}
	return found.Close()
}

func (p *Port) modeFits() bool {
	return p.opts.Mode == Auto || p.opts.Mode == p.mode
}

// openObjects opens the pinned program and maps and makes sure that they are
// what the link runs: a crash in the middle of a replacement, or a stranger's
// hand, can leave others in their place.
func openObjects(found *pinnedLink, queues int) (*redirectObjects, error) {
	o := new(redirectObjects)
	if err := o.open(found.dir); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	if err := o.check(found.program, queues); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

func (o *redirectObjects) open(dir string) error {
	var err error
	if o.XskfwdRedirect, err = ebpf.LoadPinnedProgram(filepath.Join(dir, progPin), nil); err != nil {
		return err
	}
	for name, slot := range o.slots() {
		if *slot, err = ebpf.LoadPinnedMap(filepath.Join(dir, name), nil); err != nil {
			return err
		}
	}
	return nil
}

// slots gives each map of the program under the name it is pinned by.
func (o *redirectObjects) slots() map[string]**ebpf.Map {
	return map[string]**ebpf.Map{
		redirectMapCountersMap: &o.CountersMap,
		redirectMapPartnerMap:  &o.PartnerMap,
		redirectMapQidconfMap:  &o.QidconfMap,
		redirectMapXsksMap:     &o.XsksMap,
	}
}

func (o *redirectObjects) check(running ebpf.ProgramID, queues int) error {
	info, err := o.XskfwdRedirect.Info()
	if err != nil {
		return err
	}
	if id, _ := info.ID(); id != running {
		return fmt.Errorf("program %d is pinned, program %d runs", id, running)
	}
	used, _ := info.MapIDs()
	spec, err := sizedSpec(queues)
	if err != nil {
		return err
	}
	for name, slot := range o.slots() {
		if err := spec.Maps[name].Compatible(*slot); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		info, err := (*slot).Info()
		if err != nil {
			return err
		}
		if id, _ := info.ID(); !slices.Contains(used, id) {
			return fmt.Errorf("%s: map %d is pinned, but not the one in use", name, id)
		}
	}
	return nil
}

// pinObjects pins program and maps where the link will follow. What a crashed
// process left there has no link, or not the right one, and goes.
func (p *Port) pinObjects(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make pin directory: %w", err)
	}
	if err := pinOver(p.objects.XskfwdRedirect, filepath.Join(dir, progPin)); err != nil {
		return err
	}
	for name, slot := range p.objects.slots() {
		if err := pinOver(*slot, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func pinOver(o interface{ Pin(string) error }, path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove stale pin: %w", err)
	}
	if err := o.Pin(path); err != nil {
		return fmt.Errorf("pin %s: %w", path, err)
	}
	return nil
}

// removePins takes the pins out of a version directory, and the directory with
// them unless there is something of somebody else's in it. It does not detach.
func removePins(dir string) (removed []string, err error) {
	for _, name := range pinNames() {
		path := filepath.Join(dir, name)
		err := os.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return removed, fmt.Errorf("remove pin: %w", err)
		}
		removed = append(removed, path)
	}
	return removed, removeIfEmpty(dir)
}

// removeIfEmpty leaves a directory alone in which there is something.
func removeIfEmpty(dir string) error {
	err := unix.Rmdir(dir)
	if err == nil || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return fmt.Errorf("remove pin directory %s: %w", dir, err)
}
