// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/pagepool"
)

// HugePages says what memory a UMEM is made of.
type HugePages uint8

const (
	HugeAuto    HugePages = iota // huge pages if enough are free, else normal ones
	HugeNever                    // normal pages
	HugeRequire                  // huge pages, or an error
)

// UmemConfig describes a UMEM.
type UmemConfig struct {
	Frames    int // number of chunks
	FrameSize int // bytes of a chunk: 2048 or 4096
	HugePages HugePages
}

// Umem is the packet memory of a daemon: equal chunks, from which every frame
// is made, and the list of those that nobody holds.
//
// Methods may be called from any goroutine, unless they say otherwise.
type Umem struct {
	mem       []byte // nil after Close
	size      uint64 // Frames x FrameSize
	chunkMask uint64 // FrameSize-1
	shift     uint8  // log2 FrameSize
	huge      bool
	hugeWhy   string
	unmap     func() error

	// owners holds for each chunk the MemID of the pool that has it; 0 is
	// nobody's.
	//
	// Invariant: a chunk is on the free list if, and only if, its owner is 0.
	// Invariant: owners[i] is written by whoever holds chunk i.
	owners []uint32

	// What is above is read for every packet, what is below is written by
	// whoever allocates.
	_ [cacheLinePair]byte

	freeMu sync.Mutex
	free   []pagepool.Page // last in, first out: warm chunks first
	// freeCount is len(free). Written under freeMu.
	freeCount atomic.Int64
	// badFrees counts pages given back that were no page, or free already.
	badFrees atomic.Uint64

	// Sockets that share this UMEM, for Open and Close.
	openMu  sync.Mutex
	sockets []*Socket
	// registered says that the kernel has, or has had, this memory registered;
	// it lets go of the locked pages late.
	registered bool
	closed     bool
}

// NewUmem maps memory for a UMEM, near the CPU of the calling thread where memory
// is not all equally near. It is registered with the kernel by the first Open.
func NewUmem(cfg UmemConfig) (*Umem, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	mem, huge, why, err := mapUmem(cfg.Frames*cfg.FrameSize, cfg.HugePages)
	if err != nil {
		return nil, fmt.Errorf("umem of %s: %w", size(cfg.Frames*cfg.FrameSize), err)
	}
	u := newUmem(mem[:cfg.Frames*cfg.FrameSize], cfg.FrameSize)
	u.huge, u.hugeWhy = huge, why
	u.unmap = func() error { return unix.Munmap(mem) }
	return u, nil
}

// NewUmemOver makes a UMEM of memory the caller has. The kernel takes only
// memory that begins at a page boundary; for a UMEM that no kernel sees, any
// does.
func NewUmemOver(mem []byte, frameSize int) (*Umem, error) {
	cfg := UmemConfig{Frames: len(mem) / max(frameSize, 1), FrameSize: frameSize}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	u := newUmem(mem[:cfg.Frames*frameSize], frameSize)
	u.hugeWhy = "memory of the caller"
	u.unmap = func() error { return nil }
	return u, nil
}

func (cfg UmemConfig) validate() error {
	if cfg.FrameSize != 2048 && cfg.FrameSize != 4096 {
		// The kernel takes powers of two from 2048 to its page size.
		return fmt.Errorf("umem frame size %d: must be 2048 or 4096", cfg.FrameSize)
	}
	if cfg.Frames <= 0 || cfg.Frames > 1<<31 {
		// The kernel counts chunks in 32 bits.
		return fmt.Errorf("umem frames %d: must be from 1 to %d", cfg.Frames, 1<<31)
	}
	if page := unix.Getpagesize(); cfg.FrameSize > page {
		return fmt.Errorf("umem frame size %d: is larger than a page of %d", cfg.FrameSize, page)
	}
	return nil
}

func newUmem(mem []byte, frameSize int) *Umem {
	frames := len(mem) / frameSize
	u := &Umem{
		mem:       mem,
		size:      uint64(len(mem)),
		chunkMask: uint64(frameSize - 1),
		shift:     uint8(bits.TrailingZeros(uint(frameSize))),
		owners:    make([]uint32, frames),
		free:      make([]pagepool.Page, frames),
	}
	for i := range u.free { // the lowest address on top
		u.free[i] = u.pageOf(uint64(frames-1-i) << u.shift)
	}
	// Ordering: nobody else has the UMEM yet.
	u.freeCount.Store(int64(frames))
	return u
}

// Size is the number of bytes of all chunks.
func (u *Umem) Size() uint64 { return u.size }

// Frames is the number of chunks.
func (u *Umem) Frames() int { return len(u.owners) }

// FrameSize is the number of bytes of a chunk.
func (u *Umem) FrameSize() int { return int(u.chunkMask) + 1 }

// HugePages reports whether the UMEM is in huge pages, and what it is in, or
// why it is not, in words for a log.
func (u *Umem) HugePages() (bool, string) { return u.huge, u.hugeWhy }

// Bytes is the frame of a descriptor. It panics on an address outside of the
// UMEM; see Contains.
func (u *Umem) Bytes(addr uint64, n uint32) []byte {
	end := addr + uint64(n)
	return u.mem[addr:end:end]
}

// Contains reports whether n bytes at addr are in one chunk of the UMEM, which
// is what the kernel demands of a TX descriptor and grants for an RX descriptor.
func (u *Umem) Contains(addr uint64, n uint32) bool {
	return addr < u.size && addr&u.chunkMask+uint64(n) <= u.chunkMask+1
}

// PageOf is the page of the chunk that addr lies in: 0, no page, if it lies in
// none.
func (u *Umem) PageOf(addr uint64) pagepool.Page {
	if addr >= u.size {
		return 0
	}
	return u.pageOf(addr)
}

// pageOf sets the lowest bit, so that the chunk at address 0 is a page too.
func (u *Umem) pageOf(addr uint64) pagepool.Page {
	return pagepool.Page(addr&^u.chunkMask | 1)
}

// AddrOf is the address of a page's chunk, as fill descriptors want it.
func (u *Umem) AddrOf(p pagepool.Page) uint64 { return uint64(p) &^ 1 }

// MemOf is the pool which has the chunk that addr lies in. 0 is none: the chunk
// is free, or addr lies in no chunk.
func (u *Umem) MemOf(addr uint64) pagepool.MemID {
	i := addr >> u.shift
	if i >= uint64(len(u.owners)) {
		return 0
	}
	return pagepool.MemID(atomic.LoadUint32(&u.owners[i]))
}

// Resolve is the page and the pool of an address that came back from the
// kernel. It is not ok for an address of no chunk, or of a chunk nobody has:
// completions of invalid descriptors carry whatever address was in them.
func (u *Umem) Resolve(addr uint64) (p pagepool.Page, id pagepool.MemID, ok bool) {
	id = u.MemOf(addr)
	return u.pageOf(addr), id, id != 0
}

// SetMem makes id the pool that has the page. Providers do this by themselves.
// It writes only on a change, which is rare: pages mostly stay in their pool.
//
// Owner: whoever holds the page.
func (u *Umem) SetMem(p pagepool.Page, id pagepool.MemID) {
	owner := &u.owners[u.AddrOf(p)>>u.shift]
	if atomic.LoadUint32(owner) == uint32(id) {
		return
	}
	// Ordering: release; pairs with the load in MemOf by the worker that gets
	// the address back from the kernel. The rings' indices order the two as
	// well, but by way of the kernel, which the race detector does not see.
	atomic.StoreUint32(owner, uint32(id))
}

// Close unmaps the UMEM. It refuses while sockets are open. The memory must not
// be touched afterwards.
func (u *Umem) Close() error {
	u.openMu.Lock()
	defer u.openMu.Unlock()
	if u.closed {
		return nil
	}
	if n := len(u.sockets); n > 0 {
		return fmt.Errorf("umem of %s: close: %d sockets are open", size(u.size), n)
	}
	u.closed = true
	u.mem = nil
	if err := u.unmap(); err != nil {
		return fmt.Errorf("umem of %s: unmap: %w", size(u.size), err)
	}
	return nil
}

// mapUmem maps n bytes, in huge pages if they are wanted and there.
func mapUmem(n int, want HugePages) (mem []byte, huge bool, why string, err error) {
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_POPULATE
	why = "normal pages: huge pages are off"
	if want != HugeNever {
		rounded := (n + hugePageBytes - 1) &^ (hugePageBytes - 1)
		mem, err = unix.Mmap(-1, 0, rounded, unix.PROT_READ|unix.PROT_WRITE, flags|unix.MAP_HUGETLB|hugePageFlag)
		if err == nil {
			return mem, true, fmt.Sprintf("%d huge pages of %s", rounded/hugePageBytes, size(hugePageBytes)), nil
		}
		why = fmt.Sprintf("%d huge pages of %s are not free (%v): raise vm.nr_hugepages", rounded/hugePageBytes, size(hugePageBytes), err)
		if want == HugeRequire {
			return nil, false, "", errors.New(why)
		}
		why = "normal pages: " + why
	}
	mem, err = unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return nil, false, "", fmt.Errorf("map: %w", err)
	}
	return mem, false, why, nil
}

const (
	// hugePageBytes is 2 MiB, the huge page that amd64 and arm64 with 4 KiB
	// pages have in common. 1 GiB pages are rarely there; the default size of
	// a machine may be either, so it is asked for by name.
	hugePageBytes = 2 << 20
	hugePageFlag  = 21 << unix.MAP_HUGE_SHIFT // log2 of hugePageBytes
)

// size is a number of bytes for people.
func size[N int | uint64](n N) string {
	switch b := uint64(n); {
	case b >= 1<<20 && b%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", b>>20)
	case b%1024 == 0:
		return fmt.Sprintf("%d KiB", b>>10)
	default:
		return fmt.Sprintf("%d bytes", b)
	}
}
