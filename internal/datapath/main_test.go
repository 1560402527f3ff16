// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"

	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// TestMain fails if tests leave descriptors or goroutines behind.
func TestMain(m *testing.M) { labtest.Main(m) }
