// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"math"
	"testing"

	"github.com/asavie/xdp"
)

func TestUmemTouchReadsAByteOfEachFrameAndNoneBeyond(t *testing.T) {
	u, err := NewUmemOver(make([]byte, 4*2048), 2048)
	if err != nil {
		t.Fatal(err)
	}
	u.Bytes(256, 1)[0] = 1
	u.Bytes(3*2048+256, 1)[0] = 2
	frames := []xdp.Desc{{Addr: 256, Len: 60}, {Addr: 3*2048 + 256, Len: 60}, {Addr: 4 * 2048}, {Addr: math.MaxUint64}}
	if got := u.Touch(frames); got != 3 {
		t.Errorf("Touch gave %d, want 3: the two bytes that are there", got)
	}
	if got := u.Touch(nil); got != 0 {
		t.Errorf("Touch of nothing gave %d", got)
	}
}
