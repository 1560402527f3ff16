// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/xskfwd/xskfwd/bulk"
	"github.com/xskfwd/xskfwd/internal/config"
	"github.com/xskfwd/xskfwd/internal/datapath"
	"github.com/xskfwd/xskfwd/internal/metrics"
	"github.com/xskfwd/xskfwd/internal/xsk"
	"github.com/xskfwd/xskfwd/napi"
)

func TestFillTargetLeavesHalfOfASmallShare(t *testing.T) {
	for _, c := range []struct{ frames, units, fillRing, want int }{
		{64, 2, 64, 16}, {64, 2, 2048, 16}, {8192, 2, 2048, 2048}, {8192, 2, 64, 64}, {8191, 2, 4096, 2047}, {128, 4, 64, 16},
	} {
		umem, err := xsk.NewUmemOver(make([]byte, c.frames*2048), 2048)
		if err != nil {
			t.Fatal(err)
		}
		p := &plane{cfg: &config.Config{FillRing: c.fillRing}, umem: umem, units: make([]*unit, c.units)}
		if got := p.fillTarget(); got != c.want {
			t.Errorf("%d frames, %d queues, fill ring %d: got %d, want %d", c.frames, c.units, c.fillRing, got, c.want)
		}
	}
}

// Every value a setting can have means something of its own in the libraries.
func TestSettingsReachTheLibraries(t *testing.T) {
	if got := []xsk.Policy{policyOf(config.ZerocopyRequire), policyOf(config.ZerocopyNever), policyOf(config.ZerocopyPrefer)}; !slices.Equal(got, []xsk.Policy{xsk.Require, xsk.Never, xsk.Prefer}) {
		t.Errorf("zero-copy policies: got %v", got)
	}
	if got := []bulk.Rule{ruleOf(config.BulkPartition), ruleOf(config.BulkChange)}; !slices.Equal(got, []bulk.Rule{bulk.Partition, bulk.Change}) {
		t.Errorf("bulk rules: got %v", got)
	}
	if got := []napi.Mode{modeOf(config.PollInterrupt), modeOf(config.PollAdaptive), modeOf(config.PollBusy)}; !slices.Equal(got, []napi.Mode{napi.Interrupt, napi.Adaptive, napi.Busy}) {
		t.Errorf("poll modes: got %v", got)
	}
	if got := []napi.ArmRule{armOf(config.ArmIdle), armOf(config.ArmAlways)}; !slices.Equal(got, []napi.ArmRule{napi.ArmIdle, napi.ArmAlways}) {
		t.Errorf("arm rules: got %v", got)
	}
}

func TestRefusedZerocopyNamesItsCure(t *testing.T) {
	if err := withCure(xsk.ErrNoZerocopy, xsk.Require); !errors.Is(err, xsk.ErrNoZerocopy) || !strings.Contains(err.Error(), "--zerocopy prefer") {
		t.Errorf("required: got %v", err)
	}
	if err := withCure(xsk.ErrNoZerocopy, xsk.Prefer); err != xsk.ErrNoZerocopy {
		t.Errorf("preferred: got %v", err)
	}
}

func TestLowestFindsANegativePlaceWhereverItIs(t *testing.T) {
	for i := range 7 {
		var at [7]int64
		at[i] = -1
		c := datapath.Census{Cache: at[0], Ring: at[1], Fill: at[2], Rx: at[3], Tx: at[4], Done: at[5], Held: at[6]}
		if lowest(c) != -1 {
			t.Errorf("%+v: got %d, want -1", c, lowest(c))
		}
	}
}

// Whatever the kernel dropped has one reason, in copy mode and out of it.
func TestUnreceivedFramesHaveOneReasonEach(t *testing.T) {
	x := metrics.XSKStatistics{RxDropped: 10, RxFillRingEmptyDescs: 7, RxRingFull: 5}
	for zerocopy, want := range map[bool][]uint64{false: {7, 3, 5}, true: {0, 10, 5}} {
		for i, d := range unreceived(x, zerocopy) {
			if d.Packets != want[i] {
				t.Errorf("zero-copy %t, %v: got %d, want %d", zerocopy, d.Reason, d.Packets, want[i])
			}
		}
	}
}

func TestWakeupsAddUpToTheCalls(t *testing.T) {
	k := datapath.KickCounters{Calls: 20, Refused: 3, Again: 2, LinkDown: 1, Gone: 1, Failed: 1, Drained: 9}
	if w := wakeups(&k); w.OK+w.Again+w.Busy+w.LinkDown+w.Gone+w.Failed != k.Calls {
		t.Errorf("got %+v of %d calls", w, k.Calls)
	}
}

func TestPortTakesOverAnMTUThatChanges(t *testing.T) {
	p := &port{name: "p", partner: &port{}, facts: facts{ifname: "p", mtu: 1500}}
	p.maxBytes.Store(datapath.MaxFrameBytes(1500))
	d := &daemon{cfg: config.Defaults(), log: slog.New(slog.DiscardHandler), obs: &observer{}, ports: []*port{p}}
	d.noteLink(p, facts{ifname: "renamed", mtu: 1000, up: true})
	if got, want := p.maxBytes.Load(), datapath.MaxFrameBytes(1000); got != want {
		t.Errorf("longest frame: got %d, want %d", got, want)
	}
	if p.facts.ifname != "renamed" || !p.facts.up || p.facts.adminUp {
		t.Errorf("facts: got %+v", p.facts)
	}
}
