// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"unsafe"

	"github.com/asavie/xdp"
	"golang.org/x/sys/unix"
)

// The structures shared with the kernel have the sizes and offsets of
// include/uapi/linux/if_xdp.h. A difference does not compile.
var (
	_ [16]struct{} = [unsafe.Sizeof(xdp.Desc{})]struct{}{}
	_ [0]struct{}  = [unsafe.Offsetof(xdp.Desc{}.Addr)]struct{}{}
	_ [8]struct{}  = [unsafe.Offsetof(xdp.Desc{}.Len)]struct{}{}
	_ [12]struct{} = [unsafe.Offsetof(xdp.Desc{}.Options)]struct{}{}

	_ [32]struct{} = [unsafe.Sizeof(unix.XDPUmemReg{})]struct{}{}
	_ [8]struct{}  = [unsafe.Offsetof(unix.XDPUmemReg{}.Len)]struct{}{}
	_ [16]struct{} = [unsafe.Offsetof(unix.XDPUmemReg{}.Size)]struct{}{}
	_ [24]struct{} = [unsafe.Offsetof(unix.XDPUmemReg{}.Flags)]struct{}{}

	_ [32]struct{}  = [unsafe.Sizeof(unix.XDPRingOffset{})]struct{}{}
	_ [128]struct{} = [unsafe.Sizeof(unix.XDPMmapOffsets{})]struct{}{}
	_ [64]struct{}  = [unsafe.Offsetof(unix.XDPMmapOffsets{}.Fr)]struct{}{}
	_ [48]struct{}  = [unsafe.Sizeof(unix.XDPStatistics{})]struct{}{}

	// Rings that belong to different workers do not share cache lines.
	_ [cacheLinePair]struct{} = [unsafe.Sizeof(TxRing{})]struct{}{}
	_ [cacheLinePair]struct{} = [unsafe.Sizeof(RxRing{})]struct{}{}
)

// xdpOptions is struct xdp_options.
type xdpOptions struct{ flags uint32 }

const (
	// minTxSkbBudget is TX_BATCH_SIZE of net/xdp/xsk.c: what one sendto moves
	// in copy mode unless told otherwise, and the least that
	// XDP_MAX_TX_SKB_BUDGET accepts (EACCES below, and above the TX ring size).
	// Measured: 32 a call on 6.18.
	minTxSkbBudget = 32

	// maxRingEntries keeps a ring of 16-byte descriptors within 64 MiB. Each
	// ring is zeroed, contiguous kernel memory; the kernel itself would let a
	// typing error ask for gigabytes. The largest hardware rings have 32768.
	maxRingEntries = 1 << 22
)
