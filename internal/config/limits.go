// SPDX-License-Identifier: Apache-2.0

package config

import "time"

const (
	// MaxQueues is how many queues a port can have, so queue numbers end one
	// below it. It is the kernel's own bound for a new device
	// (rtnl_create_link refuses IFLA_NUM_RX_QUEUES above 4096). Larger would
	// let a mistyped range ask for queues that cannot exist.
	MaxQueues = 4096

	// MaxCPUs bounds a CPU number: the largest NR_CPUS the kernel's Kconfig
	// offers (x86 MAXSMP, 8192). Smaller would refuse a real machine.
	MaxCPUs = 8192

	// MinRing is one weight of a napi poll (64 packets). In a smaller ring no
	// poll could ever be full, and each batch would end in a kick.
	MinRing = 64

	// MaxRing bounds the four rings. The kernel has no bound of its own but
	// memory. 32768 descriptors take 2.2 ms to fill with 64-byte frames at
	// 10 Gbit/s, just more than a round of the napi loop may last (2 ms); larger
	// only adds latency, and 64 MiB of frames for each ring of each queue.
	MaxRing = 32768

	// MaxUmemFrames is 8 GiB of 2048-byte frames. A larger number is a typing
	// mistake sooner than a router; registration would fail long after the
	// configuration was accepted.
	MaxUmemFrames = 1 << 22

	// MinQueueFrames is each queue's least share of the UMEM. Half of a share is
	// posted for receiving, so that sixteen frames can be received while as many
	// are on their way out; with fewer, a queue stalls at each burst.
	MinQueueFrames = 32

	// MaxBulkSize is the length of the return queue, 16 as in the kernel's
	// xdp_frame_bulk. The array is of that size: larger does not fit.
	MaxBulkSize = 16

	// MaxTxTimer bounds the TX timer. A frame that was sent is away from its
	// pool for up to this long; above 100 ms an idle port would look like a leak.
	MaxTxTimer = 100 * time.Millisecond

	// MaxPortName is IFNAMSIZ-1, the longest name of a device in bytes. A longer
	// one exists nowhere.
	MaxPortName = 15

	// maxFileBytes bounds the configuration file. Every setting ten times over
	// fits in a tenth of it; without a bound, --config /dev/zero fills memory.
	maxFileBytes = 1 << 20
)
