// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/xskfwd/xskfwd/internal/ethtool"
	"github.com/xskfwd/xskfwd/internal/netlab"
)

// A partner that takes no redirected frames makes fail-to-wire a promise that is
// not kept: the daemon says so at start, and says nothing where all is well.
func TestIntegrationPartnerThatTakesNoRedirectedFramesIsSaid(t *testing.T) {
	const warning = "fail-to-wire would lose frames"
	r := newRig(t, netlab.VethOptions{})
	r.start()
	r.stop()
	if log := r.daemon.Log(); strings.Contains(log, warning) {
		t.Errorf("warned although both far ends have GRO:\n%s", log)
	}
	if err := r.b.SetFeatures("b0", map[string]bool{ethtool.GRO: false}); err != nil {
		t.Fatal(err)
	}
	r.start()
	r.stop()
	if log := r.daemon.Log(); strings.Count(log, warning) != 1 || !strings.Contains(log, "port=r0") || !strings.Contains(log, "gro on") {
		t.Errorf("want one warning, of port r0, with its cure:\n%s", log)
	}
}
