// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// loadCure is what helps against a load that failed, in parentheses, or nothing.
func loadCure(err error) string {
	switch {
	case errors.Is(err, unix.EPERM):
		return " (needs CAP_BPF and CAP_NET_ADMIN)"
	case outOfFiles(err):
		return " (" + moreFiles + ")"
	}
	return ""
}

// outOfFiles is about this process or this host, and no fault of the interface.
func outOfFiles(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)
}

const moreFiles = "raise the limit on open files: LimitNOFILE of the service, ulimit -n, or fs.file-max of the host"

// refused words a refused attach in one line: object, what was tried, errno,
// the kernel's own text, the cure.
func (p *Port) refused(mode Mode, err error) error {
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EEXIST) {
		return p.beaten(mode, err)
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		err = errno
	}
	text := p.kernelText(mode)
	said := ""
	if text != "" {
		said = fmt.Sprintf(" (kernel: %q)", text)
	}
	device, mtu := p.device()
	return fmt.Errorf("attach XDP to %s in %s mode: %w%s: %s", device, mode, err, said, p.cure(mode, err, text, mtu))
}

// beaten: somebody was faster than us after makeRoom had looked.
func (p *Port) beaten(mode Mode, err error) error {
	on, lookErr := attachedTo(p.opts.Ifindex)
	if lookErr != nil || !on.present {
		return fmt.Errorf("attach XDP to %s in %s mode: %w", p.opts.Ifname, mode, err)
	}
	return fmt.Errorf("attach XDP to %s in %s mode: %w: %s", p.opts.Ifname, mode, ErrOccupied, on)
}

// kernelText asks again by netlink, because bpf_link_create has no room for
// the kernel's reason and netlink has. Should the kernel agree this time, the
// program is taken off again and there is no reason to report.
func (p *Port) kernelText(mode Mode) string {
	err := setXDP(p.opts.Ifindex, p.objects.XskfwdRedirect.FD(), mode)
	if err == nil {
		_ = setXDP(p.opts.Ifindex, -1, mode)
		return ""
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), errno.Error()), ": ")
}

// setXDP attaches a program by netlink where there is none, or with fd -1
// removes the one that is there. The error carries the extended ack's text.
func setXDP(ifindex, fd int, mode Mode) error {
	socket, err := nl.GetNetlinkSocketAt(netns.None(), netns.None(), unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer socket.Close()
	if err := socket.SetExtAck(true); err != nil {
		return err
	}
	flags := map[Mode]uint32{Native: nl.XDP_FLAGS_DRV_MODE, Generic: nl.XDP_FLAGS_SKB_MODE}[mode]
	if fd >= 0 {
		flags |= nl.XDP_FLAGS_UPDATE_IF_NOEXIST
	}
	request := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	request.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: socket}}
	message := nl.NewIfInfomsg(unix.AF_UNSPEC)
	message.Index = int32(ifindex)
	request.AddData(message)
	attr := nl.NewRtAttr(unix.IFLA_XDP|unix.NLA_F_NESTED, nil)
	attr.AddRtAttr(nl.IFLA_XDP_FD, nl.Uint32Attr(uint32(int32(fd))))
	attr.AddRtAttr(nl.IFLA_XDP_FLAGS, nl.Uint32Attr(flags))
	request.AddData(attr)
	_, err = request.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// device names the interface with what a refusal hangs on.
func (p *Port) device() (words string, mtu mtuFacts) {
	l, err := netlink.LinkByIndex(p.opts.Ifindex)
	if err != nil {
		return fmt.Sprintf("%s (interface index %d)", p.opts.Ifname, p.opts.Ifindex), mtu
	}
	mtu = readMTU(l)
	return fmt.Sprintf("%s (%s, mtu %d)", p.opts.Ifname, l.Type(), l.Attrs().MTU), mtu
}

// mtuFacts say which MTU stands in the way of native mode. On veth it is the
// peer's, since that is what sends to us.
type mtuFacts struct {
	veth     bool
	peer     string // empty: in another network namespace
	peerMTU  int
	ownName  string
	pageSize int
}

func readMTU(l netlink.Link) mtuFacts {
	a := l.Attrs()
	f := mtuFacts{veth: l.Type() == "veth", ownName: a.Name, pageSize: os.Getpagesize()}
	if !f.veth || a.NetNsID >= 0 {
		return f
	}
	if peer, err := netlink.LinkByIndex(a.ParentIndex); err == nil {
		f.peer, f.peerMTU = peer.Attrs().Name, peer.Attrs().MTU
	}
	return f
}

// limit is the largest MTU a program without multi-buffer support is taken
// with: one page less the XDP headroom, the skb_shared_info at its end and the
// Ethernet header. On veth this is exact (3506 with 4096-byte pages, measured
// on 6.18); drivers take less where they need room of their own.
func (f mtuFacts) limit() int {
	const headroom, sharedInfo, ethernet = 256, 320, 14
	return f.pageSize - headroom - sharedInfo - ethernet
}

func (f mtuFacts) cure() string {
	switch {
	case !f.veth:
		return fmt.Sprintf("lower its mtu to %d or less (ip link set dev %s mtu %d) or use --xdp generic", f.limit(), f.ownName, f.limit())
	case f.peer == "":
		return fmt.Sprintf("the limit is %d on the mtu of its veth peer, in another namespace: lower that, or use --xdp generic", f.limit())
	}
	return fmt.Sprintf("the limit is %d on the mtu of its veth peer %s, which is %d: lower that (ip link set dev %s mtu %d) or use --xdp generic",
		f.limit(), f.peer, f.peerMTU, f.peer, f.limit())
}

func (p *Port) cure(mode Mode, err error, text string, mtu mtuFacts) string {
	switch {
	case errors.Is(err, os.ErrPermission):
		return "needs CAP_NET_ADMIN and CAP_BPF"
	case outOfFiles(err):
		return moreFiles
	case errors.Is(err, unix.ENODEV):
		return "the interface is gone"
	case mode == Generic:
		return "generic mode is all the kernel has for such a device"
	case errors.Is(err, unix.ERANGE) || strings.Contains(text, "MTU"):
		return mtu.cure()
	case strings.Contains(text, "queue") || strings.Contains(text, "TX rings"):
		return fmt.Sprintf("change the queue counts (ethtool -L, on a veth at both ends: no more tx queues at the peer than rx queues on %s) or use --xdp generic", p.opts.Ifname)
	case errors.Is(err, unix.EOPNOTSUPP):
		return "the driver has no native XDP: use --xdp generic"
	}
	return "use --xdp generic"
}
