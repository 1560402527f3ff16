// SPDX-License-Identifier: Apache-2.0

package ethtool

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Kernel names of the features that matter to a forwarder.
const (
	GRO           = "rx-gro"
	HardwareGRO   = "rx-gro-hw"
	LRO           = "rx-lro"
	RxChecksum    = "rx-checksum"
	RxVLANStrip   = "rx-vlan-hw-parse"
	ScatterGather = "tx-scatter-gather"
	TxChecksum    = "tx-checksum-ip-generic"
	GSO           = "tx-generic-segmentation"
	TSO           = "tx-tcp-segmentation"
)

// Feature is the state of one offload.
type Feature struct {
	Active     bool // in force now
	Wanted     bool // asked for; may be held back by another feature
	Changeable bool // the driver lets it be changed
}

// Features maps the kernel's feature names to their states.
type Features map[string]Feature

// GetFeatures reads every feature the kernel knows.
func GetFeatures(ifname string) (Features, error) {
	var fs Features
	err := withConn(func(c *conn) error {
		attrs, err := c.request(unix.ETHTOOL_MSG_FEATURES_GET, 0, unix.ETHTOOL_A_FEATURES_HEADER, ifname)
		if err != nil {
			return err
		}
		fs, err = parseFeatures(attrs)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("device %s: read features: %w", ifname, err)
	}
	return fs, nil
}

// SetFeatures asks for features by their kernel names and returns, sorted,
// the names of those that are not as asked afterwards: fixed by the driver,
// or held by another feature. Names the kernel does not know are an error.
func SetFeatures(ifname string, want map[string]bool) (refused []string, err error) {
	err = withConn(func(c *conn) error {
		attrs, err := c.request(unix.ETHTOOL_MSG_FEATURES_SET, 0, unix.ETHTOOL_A_FEATURES_HEADER, ifname, wantedAttr(want))
		if err != nil {
			return err
		}
		refused, err = parseRefused(attrs)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("device %s: set features %s: %w", ifname, describe(want), err)
	}
	return refused, nil
}

func wantedAttr(want map[string]bool) *nl.RtAttr {
	set := nest(unix.ETHTOOL_A_FEATURES_WANTED)
	bits := nest(unix.ETHTOOL_A_BITSET_BITS)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		bit := nest(unix.ETHTOOL_A_BITSET_BITS_BIT)
		bit.AddRtAttr(unix.ETHTOOL_A_BITSET_BIT_NAME, nl.ZeroTerminated(name))
		if want[name] {
			bit.AddRtAttr(unix.ETHTOOL_A_BITSET_BIT_VALUE, nil)
		}
		bits.AddChild(bit)
	}
	set.AddChild(bits)
	return set
}

func describe(want map[string]bool) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		state := "off"
		if want[name] {
			state = "on"
		}
		parts = append(parts, name+" "+state)
	}
	return strings.Join(parts, ", ")
}

// parseFeatures joins the four bit sets of the reply. The first names every
// feature; the others name only what is set.
func parseFeatures(attrs []syscall.NetlinkRouteAttr) (Features, error) {
	sets := map[int]map[string]bool{}
	for _, a := range attrs {
		if k := kind(a); k != unix.ETHTOOL_A_FEATURES_HEADER {
			set, err := parseBitset(a.Value)
			if err != nil {
				return nil, err
			}
			sets[k] = set
		}
	}
	fs := Features{}
	for name, changeable := range sets[unix.ETHTOOL_A_FEATURES_HW] {
		fs[name] = Feature{
			Active:     sets[unix.ETHTOOL_A_FEATURES_ACTIVE][name],
			Wanted:     sets[unix.ETHTOOL_A_FEATURES_WANTED][name],
			Changeable: changeable && !sets[unix.ETHTOOL_A_FEATURES_NOCHANGE][name],
		}
	}
	return fs, nil
}

// parseRefused reads the reply to a set request: its wanted set names the
// features whose state differs from what was asked.
func parseRefused(attrs []syscall.NetlinkRouteAttr) ([]string, error) {
	for _, a := range attrs {
		if kind(a) == unix.ETHTOOL_A_FEATURES_WANTED {
			set, err := parseBitset(a.Value)
			return slices.Sorted(maps.Keys(set)), err
		}
	}
	return nil, nil
}

// parseBitset reads a bit set in its verbose form: name to value. In a set
// without mask each bit named is set.
func parseBitset(b []byte) (map[string]bool, error) {
	attrs, err := nl.ParseRouteAttr(b)
	if err != nil {
		return nil, fmt.Errorf("parse bit set: %w", err)
	}
	set, noMask := map[string]bool{}, false
	for _, a := range attrs {
		switch kind(a) {
		case unix.ETHTOOL_A_BITSET_NOMASK:
			noMask = true
		case unix.ETHTOOL_A_BITSET_BITS:
			if err := parseBits(a.Value, set); err != nil {
				return nil, err
			}
		}
	}
	if noMask {
		for name := range set {
			set[name] = true
		}
	}
	return set, nil
}

func parseBits(b []byte, set map[string]bool) error {
	bits, err := nl.ParseRouteAttr(b)
	if err != nil {
		return fmt.Errorf("parse bits: %w", err)
	}
	for _, bit := range bits {
		fields, err := nl.ParseRouteAttr(bit.Value)
		if err != nil {
			return fmt.Errorf("parse bit: %w", err)
		}
		name, value := "", false
		for _, f := range fields {
			switch kind(f) {
			case unix.ETHTOOL_A_BITSET_BIT_NAME:
				name = unix.ByteSliceToString(f.Value)
			case unix.ETHTOOL_A_BITSET_BIT_VALUE:
				value = true
			}
		}
		set[name] = value
	}
	return nil
}
