// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"slices"
	"strings"
	"testing"

	"github.com/xskfwd/xskfwd/internal/config"
)

func TestServedQueuesAreThoseAskedForOrAll(t *testing.T) {
	f := facts{ifname: "eth0", rxQueues: 4}
	for _, c := range []struct {
		asked, want []int
		refused     string
	}{
		{nil, []int{0, 1, 2, 3}, ""}, {[]int{2}, []int{2}, ""}, {[]int{0, 3}, []int{0, 3}, ""},
		{[]int{4}, nil, "queue 4"}, {[]int{0, 7}, nil, "queue 7"},
	} {
		got, err := served(config.Port{Name: "eth0", Queues: c.asked}, f)
		if c.refused != "" {
			for _, word := range []string{"port eth0", c.refused, "4 RX queue", "0 to 3"} {
				if err == nil || !strings.Contains(err.Error(), word) {
					t.Errorf("%v: error does not mention %q: %v", c.asked, word, err)
				}
			}
			continue
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: got %v, %v, want %v", c.asked, got, err, c.want)
		}
	}
}
