// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"testing"

	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }
