// SPDX-License-Identifier: Apache-2.0

package netlab_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(groupLeader) != "" {
		if err := leadGroup(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	labtest.Main(m)
}
