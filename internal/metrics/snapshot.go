// SPDX-License-Identifier: Apache-2.0

package metrics

import "time"

// Snapshot is everything that is exported, at one moment. The daemon fills a fresh one for each call and hands it over; nobody writes
// to it afterwards.
//
// Counters are running totals since the daemon started. They must never go back, whatever is closed, reopened or replaced meanwhile.
type Snapshot struct {
	Daemon  Daemon
	Ports   []Port
	Umems   []Umem
	Pools   []PagePool
	Workers []Worker
}

// Daemon says which program this is and since when it runs.
type Daemon struct {
	Version      string
	Revision     string
	GoVersion    string
	StartTime    time.Time
	ConfigLoaded time.Time // when the configuration was last loaded, at start or later
	ConfigOK     bool      // whether that load succeeded
}

// Port is one NIC port, under the name it has in the configuration.
type Port struct {
	Name    string
	Partner string // the port at the other end of the wire; "" = none, then whatever it receives must be dropped
	Kind    string // "nic"
	Ifname  string // the interface name now: a rename changes it, and not Name
	Driver  string
	XDPMode string // "native", "generic", or "" while nothing is attached
	MAC     string

	Up       bool // carrier
	AdminUp  bool
	MTUBytes int

	// InFlight is how many frames were taken from this port and are neither given to the partner nor dropped yet.
	InFlight uint64

	XDP       XDPStatistics
	TxTimer   TxTimer
	TxFlushes TxFlushes
	Queues    []Queue
}

// XDPStatistics are the verdicts of the XDP program of a port.
//
// Invariant: Redirected + Partner + Passed is every frame the program has seen.
type XDPStatistics struct {
	Redirected uint64 // to the socket of the queue
	Partner    uint64 // to the partner port, in the kernel: fail-to-wire
	Passed     uint64 // to the kernel's own stack
	Orphaned   uint64 // of those not redirected, how many came in on a queue whose socket was gone
}

// TxTimer counts what the TX coalesce timers of a port's queues did.
//
// Invariant: Armed = Fired + Cancelled + Running.
type TxTimer struct {
	Armed          uint64
	Fired          uint64
	Cancelled      uint64
	Skipped        uint64 // not armed, because a poll was scheduled already
	Running        uint64 // timers running now; not exported, it closes the identity
	Syscalls       uint64
	FramesSchedule uint64 // polls scheduled because enough frames were unreaped, without waiting for the timer
}

// TxFlushes counts hand-overs of a batch to a TX ring, by what caused them.
type TxFlushes struct {
	BatchFull uint64
	PollEnd   uint64
}

// Queue is one queue of a port and the AF_XDP socket on it.
type Queue struct {
	Index           int
	ReceivePackets  uint64 // frames taken out of the RX ring
	ReceiveBytes    uint64
	TransmitPackets uint64 // frames put into the TX ring, less those known to be lost, which are in TransmitDrops
	TransmitBytes   uint64
	ReceiveDrops    []Drop
	TransmitDrops   []Drop

	Zerocopy           bool // read back from the socket, not what was asked for
	XSK                XSKStatistics
	InvalidCompletions uint64 // completions whose address is no frame of the UMEM
	FillRing           Ring
	CompletionRing     Ring
	RxRing             Ring
	TxRing             Ring
	FillWakeups        Wakeups
	TxWakeups          Wakeups
}

// Drop is one reason for which frames were dropped. The reasons of a queue are disjoint: their sum is all drops. A reason belongs in the
// list from the start, at zero, for a series that appears only with its first drop has no increase to alert on.
type Drop struct {
	Reason  string
	Packets uint64
	// Unreceived says that the kernel dropped the frame before the RX ring, so that ReceivePackets does not have it.
	Unreceived bool
}

// The reasons. docs/METRICS.md says what each means on the way in and on the way out.
const (
	ReasonNoFrame     = "no_frame"
	ReasonRingFull    = "ring_full"
	ReasonTooLong     = "too_long"
	ReasonRunt        = "runt"
	ReasonMTU         = "mtu"
	ReasonLinkDown    = "link_down"
	ReasonRefused     = "refused"
	ReasonInvalidDesc = "invalid_desc"
	ReasonUnset       = "unset"
)

// XSKStatistics are the counters of the kernel's struct xdp_statistics, under its names.
type XSKStatistics struct {
	RxDropped            uint64
	RxInvalidDescs       uint64
	TxInvalidDescs       uint64
	RxRingFull           uint64
	RxFillRingEmptyDescs uint64
	TxRingEmptyDescs     uint64
}

// Ring is one of the four rings of a socket.
type Ring struct {
	Entries    uint32 // filled entries, as user space sees them
	NeedWakeup bool   // the kernel asks for a kick; fill and TX ring only
}

// Wakeups counts the system calls that kicked a ring, by what came of each.
type Wakeups struct {
	OK       uint64 // the kernel took what there was, or a part of it
	Again    uint64 // it took nothing: EAGAIN, ENOBUFS, ENOMEM
	Busy     uint64 // EBUSY: it completed a frame without sending it
	LinkDown uint64 // ENETDOWN
	Gone     uint64 // the device is deleted or in another namespace
	Failed   uint64 // anything else
}

// Umem is one UMEM and where each of its frames is.
type Umem struct {
	Name           string
	Frames         uint64 // as configured; the census must add up to it
	FrameSizeBytes uint64
	SizeBytes      uint64
	Census         Census
}

// Census says where the frames of a UMEM are, each in exactly one place. The fields are signed because a place that is found by
// subtraction may come out below zero for a moment, while the place before it has as many too many: the sum is right all the same.
type Census struct {
	Free       int64 // on the UMEM's free list
	Fill       int64 // with the kernel, to receive into
	Rx         int64 // received, not taken yet
	Tx         int64 // with the kernel, to send
	Completion int64 // sent, not taken back yet
	Cache      int64 // in the cache of a page pool
	Ring       int64 // in the PtrRing of a page pool
	Held       int64 // in the hands of a worker: in a batch, or in a bulk queue
}

// place is one place of the census, under the name it has in the state label.
type place struct {
	state  string
	frames int64
}

func (c *Census) places() [8]place {
	return [...]place{
		{"free", c.Free}, {"fill", c.Fill}, {"rx", c.Rx}, {"tx", c.Tx},
		{"completion", c.Completion}, {"cache", c.Cache}, {"ring", c.Ring}, {"held", c.Held},
	}
}

// PagePool are the counters of one page pool, with the kernel's names, and of the bulk queue of the Napi that owns it.
type PagePool struct {
	Name string
	Umem string // the UMEM its frames come from

	AllocFast   uint64
	AllocSlow   uint64
	AllocEmpty  uint64
	AllocRefill uint64
	AllocWaive  uint64

	RecycleCached         uint64
	RecycleCacheFull      uint64
	RecycleRing           uint64
	RecycleRingFull       uint64
	RecycleReleasedRefcnt uint64

	Inflight    int64
	CacheFrames uint64
	RingFrames  uint64
	RingSize    uint64
	ProduceFull uint64 // times a producer found the PtrRing full

	// HandedOut and Returned are counted by those who use the pool, not by the pool. They are not exported: they are the other side of
	// the identities in Check.
	HandedOut uint64
	Returned  uint64

	Bulk Bulk
}

// Bulk counts the bulk returns that the Napi owning the pool made, to whichever pools the frames went.
type Bulk struct {
	FlushesFull       uint64
	FlushesPoolChange uint64
	FlushesPollEnd    uint64
	FlushedFrames     uint64
	Length            [17]uint64 // how many flushes were so many frames long; 16 is the longest
	Lookups           uint64     // searches for a pool by mem.id
	Unknown           uint64     // frames whose pool was not found: each is lost
}

// Worker is one worker thread, with the sums over its Napi instances.
type Worker struct {
	Index int
	CPU   int // -1 = not pinned
	NUMA  int // -1 = unknown

	Rounds          uint64
	Polls           uint64
	EmptyPolls      uint64
	BudgetExhausted uint64
	TimeSqueezes    uint64
	Packets         uint64
	Sleeps          uint64
	Schedules       Schedules
	Busy            time.Duration
	Idle            time.Duration
	PollDuration    Durations
}

// Schedules counts what put Napi instances on the poll list.
type Schedules struct {
	IRQ    uint64
	Timer  uint64
	Missed uint64
	Kick   uint64
}

// Durations is a histogram of times. Counts[i] is how many were at most Bounds[i] and more than the bound before; one more count at the
// end is for those above all bounds. A zero Durations is a histogram in which nothing was counted yet.
type Durations struct {
	Bounds []time.Duration
	Counts []uint64
	Sum    time.Duration
}
