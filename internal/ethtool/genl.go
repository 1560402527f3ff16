// SPDX-License-Identifier: Apache-2.0

package ethtool

import (
	"fmt"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// conn is one generic netlink socket bound to the ethtool family.
type conn struct {
	sock   *nl.NetlinkSocket
	family uint16
}

// withConn runs f on a socket of the caller's namespace.
func withConn(f func(*conn) error) error {
	sock, err := nl.GetNetlinkSocketAt(netns.None(), netns.None(), unix.NETLINK_GENERIC)
	if err != nil {
		return fmt.Errorf("open generic netlink socket: %w", err)
	}
	defer sock.Close()
	if err := sock.SetExtAck(true); err != nil {
		return fmt.Errorf("ask netlink socket for extended errors: %w", err)
	}
	c := &conn{sock: sock}
	if c.family, err = c.resolve(unix.ETHTOOL_GENL_NAME); err != nil {
		return fmt.Errorf("find netlink family %s: %w", unix.ETHTOOL_GENL_NAME, err)
	}
	return f(c)
}

// resolve asks the controller family for the number of another family.
func (c *conn) resolve(name string) (uint16, error) {
	msgs, err := c.execute(nl.GENL_ID_CTRL, nl.GENL_CTRL_CMD_GETFAMILY, 0,
		nl.NewRtAttr(nl.GENL_CTRL_ATTR_FAMILY_NAME, nl.ZeroTerminated(name)))
	if err != nil {
		return 0, err
	}
	for _, a := range msgs {
		if a.Attr.Type == nl.GENL_CTRL_ATTR_FAMILY_ID && len(a.Value) >= 2 {
			return nl.NativeEndian().Uint16(a.Value), nil
		}
	}
	return 0, unix.ENOENT
}

// request sends one ethtool command for one device and returns the
// attributes of the reply.
func (c *conn) request(cmd uint8, flags int, header int, ifname string, attrs ...*nl.RtAttr) ([]syscall.NetlinkRouteAttr, error) {
	h := nest(header)
	h.AddRtAttr(unix.ETHTOOL_A_HEADER_DEV_NAME, nl.ZeroTerminated(ifname))
	return c.execute(c.family, cmd, flags, append([]*nl.RtAttr{h}, attrs...)...)
}

func (c *conn) execute(family uint16, cmd uint8, flags int, attrs ...*nl.RtAttr) ([]syscall.NetlinkRouteAttr, error) {
	req := nl.NewNetlinkRequest(int(family), flags)
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_GENERIC: {Socket: c.sock}}
	req.AddData(&nl.Genlmsg{Command: cmd, Version: 1})
	for _, a := range attrs {
		req.AddData(a)
	}
	msgs, err := req.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil || len(msgs) == 0 {
		return nil, err
	}
	if len(msgs[0]) < nl.SizeofGenlmsg {
		return nil, fmt.Errorf("short generic netlink reply of %d bytes", len(msgs[0]))
	}
	return nl.ParseRouteAttr(msgs[0][nl.SizeofGenlmsg:])
}

// nest starts an attribute that holds others. The ethtool family insists on
// the flag.
func nest(attrType int) *nl.RtAttr {
	return nl.NewRtAttr(attrType|unix.NLA_F_NESTED, nil)
}

// kind is the attribute's type without the flag bits.
func kind(a syscall.NetlinkRouteAttr) int {
	return int(a.Attr.Type &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER))
}
