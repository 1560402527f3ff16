// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// lab is a network and a mount namespace with no bpffs but its own. Nothing of it
// can outlive the test, however that ends: namespaces, devices, mounts and pins
// go with the thread.
type lab struct {
	t        testing.TB
	bpffs    string
	cleanups []func() // run in the lab, last one first
}

const thisMountinfo = "/proc/thread-self/mountinfo"

// inLab runs the body of a test on the thread of a new lab.
func inLab(t testing.TB, body func(*lab)) {
	t.Helper()
	labtest.Privileged(t)
	l := &lab{t: t, bpffs: t.TempDir()}
	done := make(chan struct{})
	netlab.OnOwnThread(func() {
		defer close(done)
		defer l.cleanUp()
		l.enter()
		body(l)
	})
	<-done
}

func (l *lab) enter() {
	l.must(unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS))
	l.must(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	inherited, err := readMounts(thisMountinfo)
	l.must(err)
	for _, m := range inherited {
		if m.bpffs {
			l.must(unix.Unmount(m.dir, unix.MNT_DETACH))
		}
	}
	l.must(unix.Mount("bpf", l.bpffs, "bpf", 0, "mode=0700"))
	l.cleanup(func() { unix.Unmount(l.bpffs, unix.MNT_DETACH) })
	l.must(os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0o644)) // no frames but ours
}

func (l *lab) cleanup(f func()) { l.cleanups = append(l.cleanups, f) }

func (l *lab) cleanUp() {
	for _, f := range slices.Backward(l.cleanups) {
		f()
	}
}

// fatal is t.Fatalf for the lab's goroutine.
func (l *lab) fatal(format string, args ...any) {
	l.t.Helper()
	l.t.Errorf(format, args...)
	runtime.Goexit()
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.fatal("%v", err)
	}
}

// root is where PinRoot would put the pins, given the lab's bpffs.
func (l *lab) root() string { return filepath.Join(l.bpffs, rootName) }

func (l *lab) pinDir(ifname string) string {
	l.t.Helper()
	dir, err := PortDir(l.root(), ifname)
	l.must(err)
	return dir
}

// veth makes a pair of which both ends are up, and gives the index of each.
func (l *lab) veth(name, peer string, queues int) (ifindex, peerIfindex int) {
	l.t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.NumRxQueues, attrs.NumTxQueues = name, queues, queues
	l.must(netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: peer, PeerNumRxQueues: uint32(queues), PeerNumTxQueues: uint32(queues)}))
	return l.up(name), l.up(peer)
}

func (l *lab) up(name string) int {
	l.t.Helper()
	dev := l.device(name)
	l.must(netlink.LinkSetUp(dev))
	return dev.Attrs().Index
}

func (l *lab) device(name string) netlink.Link {
	l.t.Helper()
	dev, err := netlink.LinkByName(name)
	l.must(err)
	return dev
}

func (l *lab) remove(name string) {
	l.t.Helper()
	l.must(netlink.LinkDel(l.device(name)))
}

// elsewhere runs f in one more network namespace, which lasts as long as the lab.
func (l *lab) elsewhere(f func()) {
	l.t.Helper()
	here, err := netns.Get()
	l.must(err)
	defer here.Close()
	there, err := netns.New()
	l.must(err)
	l.cleanup(func() { there.Close() })
	f()
	l.must(netns.Set(here))
}

// load loads a port that is let go of when the test ends.
func (l *lab) load(o Options) *Port {
	l.t.Helper()
	p, err := Load(o)
	l.must(err)
	l.cleanup(func() { p.Close() })
	return p
}

// attach loads and attaches.
func (l *lab) attach(o Options) *Port {
	l.t.Helper()
	p := l.load(o)
	l.must(p.Attach())
	return p
}

// socket makes an AF_XDP socket that is not bound: enough to fill a slot.
func (l *lab) socket() (fd int) {
	l.t.Helper()
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	l.must(err)
	l.cleanup(func() { unix.Close(fd) })
	return fd
}

// attached is what the kernel says about the interface.
func (l *lab) attached(ifindex int) attachment {
	l.t.Helper()
	on, err := attachedTo(ifindex)
	l.must(err)
	return on
}

// files lists all that is below a directory of the bpffs.
func (l *lab) files(dir string) []string {
	l.t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil && path != dir && !strings.HasSuffix(path, ".debug") { // the kernel's own
			found = append(found, path)
		}
		return err
	})
	if !errors.Is(err, os.ErrNotExist) {
		l.must(err)
	}
	return found
}

// etherType is the first of those set aside for experiments (IEEE 802).
const etherType = 0x88b5

// tap is a packet socket that sees only our frames of an interface.
type tap struct {
	l  *lab
	fd int
}

func (l *lab) tap(ifindex int) *tap {
	l.t.Helper()
	protocol := etherType>>8 | etherType&0xff<<8 // in network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	l.must(err)
	l.cleanup(func() { unix.Close(fd) })
	l.must(unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: uint16(protocol), Ifindex: ifindex}))
	l.must(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20))
	deadline := unix.NsecToTimeval((30 * time.Second).Nanoseconds())
	l.must(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &deadline))
	return &tap{l: l, fd: fd}
}

// frame is a numbered one, to a unicast address that nobody has.
func frame(number uint32) []byte {
	f := make([]byte, 60)
	copy(f, []byte{2, 0, 0, 0, 0, 0xb, 2, 0, 0, 0, 0, 0xa, etherType >> 8, etherType & 0xff})
	binary.BigEndian.PutUint32(f[14:], number)
	return f
}

func (t *tap) send(number uint32) {
	t.l.t.Helper()
	_, err := unix.Write(t.fd, frame(number))
	t.l.must(err)
}

// receive waits for the next frame that came in.
func (t *tap) receive() (number uint32, err error) {
	buf := make([]byte, 2048)
	for {
		n, from, err := unix.Recvfrom(t.fd, buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("no frame came: %w", err)
		}
		if from.(*unix.SockaddrLinklayer).Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		if n != 60 {
			return 0, fmt.Errorf("a frame of %d bytes came", n)
		}
		return binary.BigEndian.Uint32(buf[14:]), nil
	}
}

// carry sends numbered frames in one end and requires them at the other, all
// and in order. It sends no more at a time than a veth ring (256) holds.
func (l *lab) carry(from, to *tap, frames uint32) {
	l.t.Helper()
	const batch = 100
	for first := uint32(0); first < frames; first += batch {
		last := min(first+batch, frames)
		for n := first; n < last; n++ {
			from.send(n)
		}
		for want := first; want < last; want++ {
			got, err := to.receive()
			if err != nil || got != want {
				l.fatal("frame %d of %d: got %d, %v", want, frames, got, err)
			}
		}
	}
}

// wait gives the kernel all the time it needs.
func (l *lab) wait(what string, met func() bool) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := netlab.WaitFor(ctx, func() (bool, error) { return met(), nil }); err != nil {
		l.fatal("waited in vain for %s", what)
	}
}
