// SPDX-License-Identifier: Apache-2.0

package ethtool_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/ethtool"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// inPair runs f in a namespace with the device a0, one end of a veth pair of
// 4 queues.
func inPair(t *testing.T, opts netlab.VethOptions, f func() error) {
	t.Helper()
	labtest.Privileged(t)
	a, b := labtest.NS(t), labtest.NS(t)
	opts.Queues = 4
	labtest.Veth(t, a, "a0", b, "b0", opts)
	if err := a.Do(f); err != nil {
		t.Fatal(err)
	}
}

func count(n uint32) *uint32 { return &n }

func TestIntegrationChannelsAreReadAndChanged(t *testing.T) {
	inPair(t, netlab.VethOptions{}, func() error {
		ch, err := ethtool.GetChannels("a0")
		if err != nil {
			return err
		}
		if want := (ethtool.Channels{Rx: 4, Tx: 4, MaxRx: 4, MaxTx: 4}); ch != want {
			t.Errorf("channels %+v, want %+v", ch, want)
		}
		if ch.RxQueues() != 4 || ch.TxQueues() != 4 {
			t.Errorf("queues rx %d tx %d, want 4 and 4", ch.RxQueues(), ch.TxQueues())
		}
		if err := ethtool.SetChannels("a0", ethtool.ChannelCounts{Tx: count(2)}); err != nil {
			return err
		}
		ch, err = ethtool.GetChannels("a0")
		if ch.Tx != 2 || ch.Rx != 4 {
			t.Errorf("after tx 2: %+v, want rx left at 4", ch)
		}
		return err
	})
}

func TestChannelsQueuesIncludeCombined(t *testing.T) {
	ch := ethtool.Channels{Rx: 1, Tx: 2, Combined: 8}
	if ch.RxQueues() != 9 || ch.TxQueues() != 10 {
		t.Errorf("queues rx %d tx %d, want 9 and 10", ch.RxQueues(), ch.TxQueues())
	}
}

func TestIntegrationChannelsRefusalCarriesKernelText(t *testing.T) {
	inPair(t, netlab.VethOptions{}, func() error {
		err := ethtool.SetChannels("a0", ethtool.ChannelCounts{Rx: count(9), Tx: count(2)})
		if !errors.Is(err, unix.EINVAL) {
			t.Fatalf("got %v, want EINVAL", err)
		}
		for _, part := range []string{"device a0: set channels to rx 9 tx 2: ", "exceeds maximum"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("error %q lacks %q", err, part)
			}
		}
		return nil
	})
}

func TestIntegrationChannelsOfDeviceWithoutThem(t *testing.T) {
	labtest.Privileged(t)
	err := labtest.NS(t).Do(func() error {
		_, err := ethtool.GetChannels("lo")
		return err
	})
	if !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("got %v, want EOPNOTSUPP", err)
	}
}

func TestIntegrationFeaturesAreReadAndChanged(t *testing.T) {
	inPair(t, netlab.VethOptions{Offloads: true}, func() error {
		before, err := ethtool.GetFeatures("a0")
		if err != nil {
			return err
		}
		rows := map[string]ethtool.Feature{
			ethtool.TxChecksum: {Active: true, Wanted: true, Changeable: true},
			ethtool.GRO:        {Changeable: true},
			ethtool.LRO:        {},
			ethtool.TSO:        {Active: true, Wanted: true, Changeable: true},
		}
		for name, want := range rows {
			if before[name] != want {
				t.Errorf("%s: %+v, want %+v", name, before[name], want)
			}
		}
		if refused, err := ethtool.SetFeatures("a0", map[string]bool{ethtool.GRO: true, ethtool.TxChecksum: false}); err != nil || len(refused) > 0 {
			t.Errorf("set: refused %v, %v", refused, err)
		}
		after, err := ethtool.GetFeatures("a0")
		if !after[ethtool.GRO].Active || after[ethtool.TxChecksum].Active {
			t.Errorf("after: GRO %+v, checksum %+v", after[ethtool.GRO], after[ethtool.TxChecksum])
		}
		// TSO needs checksums: still wanted, no longer active.
		if tso := after[ethtool.TSO]; tso.Active || !tso.Wanted {
			t.Errorf("TSO without checksum: %+v, want wanted but not active", tso)
		}
		return err
	})
}

func TestIntegrationFeaturesRefusedAreNamed(t *testing.T) {
	inPair(t, netlab.VethOptions{}, func() error {
		refused, err := ethtool.SetFeatures("a0", map[string]bool{ethtool.LRO: true, ethtool.TSO: true, ethtool.GRO: true})
		if want := []string{ethtool.LRO, ethtool.TSO}; !slices.Equal(refused, want) {
			t.Errorf("refused %v, want %v (fixed, and without checksum)", refused, want)
		}
		return err
	})
}

func TestIntegrationFeaturesUnknownNameIsAnError(t *testing.T) {
	inPair(t, netlab.VethOptions{}, func() error {
		_, err := ethtool.SetFeatures("a0", map[string]bool{"rx-magic": true})
		if err == nil || !strings.Contains(err.Error(), "device a0: set features rx-magic on: ") || !strings.Contains(err.Error(), "bit name not found") {
			t.Errorf("got %v, want the device, the feature and the kernel's text", err)
		}
		return nil
	})
}

func TestIntegrationErrorsNameMissingDevice(t *testing.T) {
	labtest.Privileged(t)
	for name, ask := range map[string]func() error{
		"channels": func() error { _, err := ethtool.GetChannels("nope"); return err },
		"features": func() error { _, err := ethtool.GetFeatures("nope"); return err },
		"driver":   func() error { _, err := ethtool.Driver("nope"); return err },
	} {
		err := labtest.NS(t).Do(ask)
		if !errors.Is(err, unix.ENODEV) || !strings.HasPrefix(err.Error(), "device nope: read "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIntegrationDriverIsNamed(t *testing.T) {
	inPair(t, netlab.VethOptions{}, func() error {
		driver, err := ethtool.Driver("a0")
		if driver != "veth" {
			t.Errorf("driver %q, want veth", driver)
		}
		return err
	})
}
