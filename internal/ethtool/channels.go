// SPDX-License-Identifier: Apache-2.0

package ethtool

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Channels are the queue counts of a device, and the most it can have. A
// combined channel is an RX and a TX queue that share an interrupt.
type Channels struct {
	Rx, Tx, Combined          uint32
	MaxRx, MaxTx, MaxCombined uint32
}

// RxQueues is the number of queues the device receives on.
func (c Channels) RxQueues() uint32 { return c.Rx + c.Combined }

// TxQueues is the number of queues the device transmits on.
func (c Channels) TxQueues() uint32 { return c.Tx + c.Combined }

// GetChannels reads the queue counts. A driver without channels answers
// EOPNOTSUPP.
func GetChannels(ifname string) (Channels, error) {
	var ch Channels
	err := withConn(func(c *conn) error {
		attrs, err := c.request(unix.ETHTOOL_MSG_CHANNELS_GET, 0, unix.ETHTOOL_A_CHANNELS_HEADER, ifname)
		ch = parseChannels(attrs)
		return err
	})
	if err != nil {
		return Channels{}, fmt.Errorf("device %s: read channels: %w", ifname, err)
	}
	return ch, nil
}

// ChannelCounts is what SetChannels asks for. A nil count stays as it is.
type ChannelCounts struct {
	Rx, Tx, Combined *uint32
}

func (c ChannelCounts) String() string {
	var parts []string
	for _, v := range []struct {
		name  string
		count *uint32
	}{{"rx", c.Rx}, {"tx", c.Tx}, {"combined", c.Combined}} {
		if v.count != nil {
			parts = append(parts, fmt.Sprintf("%s %d", v.name, *v.count))
		}
	}
	return strings.Join(parts, " ")
}

// SetChannels changes the queue counts.
func SetChannels(ifname string, want ChannelCounts) error {
	var attrs []*nl.RtAttr
	for _, v := range []struct {
		attr  int
		count *uint32
	}{
		{unix.ETHTOOL_A_CHANNELS_RX_COUNT, want.Rx},
		{unix.ETHTOOL_A_CHANNELS_TX_COUNT, want.Tx},
		{unix.ETHTOOL_A_CHANNELS_COMBINED_COUNT, want.Combined},
	} {
		if v.count != nil {
			attrs = append(attrs, nl.NewRtAttr(v.attr, nl.Uint32Attr(*v.count)))
		}
	}
	err := withConn(func(c *conn) error {
		_, err := c.request(unix.ETHTOOL_MSG_CHANNELS_SET, unix.NLM_F_ACK, unix.ETHTOOL_A_CHANNELS_HEADER, ifname, attrs...)
		return err
	})
	if err != nil {
		return fmt.Errorf("device %s: set channels to %v: %w", ifname, want, err)
	}
	return nil
}

func parseChannels(attrs []syscall.NetlinkRouteAttr) Channels {
	var ch Channels
	fields := map[int]*uint32{
		unix.ETHTOOL_A_CHANNELS_RX_COUNT:       &ch.Rx,
		unix.ETHTOOL_A_CHANNELS_TX_COUNT:       &ch.Tx,
		unix.ETHTOOL_A_CHANNELS_COMBINED_COUNT: &ch.Combined,
		unix.ETHTOOL_A_CHANNELS_RX_MAX:         &ch.MaxRx,
		unix.ETHTOOL_A_CHANNELS_TX_MAX:         &ch.MaxTx,
		unix.ETHTOOL_A_CHANNELS_COMBINED_MAX:   &ch.MaxCombined,
	}
	for _, a := range attrs {
		if f := fields[kind(a)]; f != nil && len(a.Value) >= 4 {
			*f = nl.NativeEndian().Uint32(a.Value)
		}
	}
	return ch
}
