// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"os"
	"testing"

	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// TestMain is also the daemon that TestIntegrationKilledDaemon... kills.
func TestMain(m *testing.M) {
	if root := os.Getenv(victimEnv); root != "" {
		beVictim(root)
		return
	}
	labtest.Main(m)
}
