// SPDX-License-Identifier: Apache-2.0

package xsk_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
	"github.com/xskfwd/xskfwd/internal/xsk"
	"github.com/xskfwd/xskfwd/pagepool"
)

func TestUmemRefusesBadSizesByName(t *testing.T) {
	for _, c := range []struct {
		cfg  xsk.UmemConfig
		want string
	}{
		{xsk.UmemConfig{Frames: 64, FrameSize: 1024}, "frame size 1024"},
		{xsk.UmemConfig{Frames: 64, FrameSize: 3000}, "frame size 3000"},
		{xsk.UmemConfig{Frames: 64, FrameSize: 8192}, "frame size 8192"},
		{xsk.UmemConfig{Frames: 0, FrameSize: 2048}, "frames 0"},
		{xsk.UmemConfig{Frames: -1, FrameSize: 2048}, "frames -1"},
		{xsk.UmemConfig{Frames: 1<<31 + 1, FrameSize: 2048}, "frames 2147483649"},
	} {
		_, err := xsk.NewUmem(c.cfg)
		mustMention(t, err, c.want, "must be")
	}
}

// TestUmemPagesAndAddressesAgree over a UMEM longer than 4 GiB, of which only
// the pages that are touched take memory.
func TestUmemPagesAndAddressesAgree(t *testing.T) {
	const length = 5 << 30
	mem, err := unix.Mmap(-1, 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(mem) })
	for _, frameSize := range []uint64{2048, 4096} {
		u, err := xsk.NewUmemOver(mem, int(frameSize))
		if err != nil {
			t.Fatal(err)
		}
		for _, chunk := range []uint64{0, frameSize, 1<<32 - frameSize, 1 << 32, 1<<32 + frameSize, length - frameSize} {
			for _, offset := range []uint64{0, 1, 256, frameSize - 1} {
				p := u.PageOf(chunk + offset)
				if p == 0 || u.AddrOf(p) != chunk {
					t.Errorf("frame size %d, address %#x: got page %#x of chunk %#x, want chunk %#x", frameSize, chunk+offset, p, u.AddrOf(p), chunk)
				}
			}
			p := u.PageOf(chunk)
			u.SetMem(p, 9)
			if page, id, ok := u.Resolve(chunk + 300); !ok || id != 9 || page != p {
				t.Errorf("frame size %d, resolve %#x: got %#x, %d, %v", frameSize, chunk, page, id, ok)
			}
			u.SetMem(p, 0)
			copy(u.Bytes(chunk+256, 4), fmt.Sprintf("%04x", chunk>>30))
			if got := string(mem[chunk+256 : chunk+260]); got != fmt.Sprintf("%04x", chunk>>30) {
				t.Errorf("bytes at %#x: got %q", chunk, got)
			}
		}
	}
}

// TestUmemRejectsAddressesThatAreNoFrame: completions of invalid descriptors
// carry what was in them.
func TestUmemRejectsAddressesThatAreNoFrame(t *testing.T) {
	u := newUmem(t, 4)
	take(t, u, 2) // chunks 0 and 1
	for _, addr := range []uint64{4 * 2048, 1e9, 1 << 32, 1 << 63, ^uint64(0), 2 * 2048, 3*2048 + 100} {
		if _, _, ok := u.Resolve(addr); ok {
			t.Errorf("address %#x, which nobody has: resolved", addr)
		}
		if got := u.MemOf(addr); got != 0 {
			t.Errorf("address %#x: got mem id %d, want 0", addr, got)
		}
	}
	for _, addr := range []uint64{4 * 2048, 1e9, 1 << 32, 1 << 63, ^uint64(0)} {
		if p := u.PageOf(addr); p != 0 {
			t.Errorf("address %#x: got page %#x, want none", addr, p)
		}
		if u.Contains(addr, 1) {
			t.Errorf("address %#x: contained", addr)
		}
	}
	for _, c := range []struct {
		addr uint64
		n    uint32
		want bool
	}{{0, 2048, true}, {0, 2049, false}, {256, 1792, true}, {256, 1793, false}, {3*2048 + 2047, 1, true}, {2047, 2, false}, {0, 0xffffffff, false}} {
		if got := u.Contains(c.addr, c.n); got != c.want {
			t.Errorf("%d bytes at %d: got %v, want %v", c.n, c.addr, got, c.want)
		}
	}
}

func TestUmemFreeListIsLastInFirstOut(t *testing.T) {
	u := newUmem(t, 8)
	pages := take(t, u, 3)
	for i, p := range pages {
		if want := uint64(i) * 2048; u.AddrOf(p) != want {
			t.Errorf("page %d: got address %d, want %d", i, u.AddrOf(p), want)
		}
	}
	u.Provider(1).FreePages(pages[1:2])
	u.Provider(1).FreePages(pages[2:3])
	if again := take(t, u, 2); again[0] != pages[2] || again[1] != pages[1] {
		t.Errorf("got %v, want %v, %v", again, pages[2], pages[1])
	}
}

func TestUmemProviderStampsPagesAndRunsDry(t *testing.T) {
	u := newUmem(t, 8)
	dst := make([]pagepool.Page, 6)
	if got := u.Provider(0).AllocPages(dst); got != 0 {
		t.Errorf("mem id 0, which marks free pages: got %d pages, want 0", got)
	}
	for _, c := range []struct {
		id   pagepool.MemID
		want int
	}{{7, 6}, {8, 2}, {9, 0}} {
		got := u.Provider(c.id).AllocPages(dst)
		if got != c.want {
			t.Fatalf("mem id %d: got %d pages, want %d", c.id, got, c.want)
		}
		for _, p := range dst[:got] {
			if id := u.MemOf(u.AddrOf(p) + 256); id != c.id {
				t.Errorf("page %#x: got mem id %d, want %d", p, id, c.id)
			}
		}
	}
	if got := u.FreeFrames(); got != 0 {
		t.Errorf("free frames: got %d, want 0", got)
	}
}

// TestUmemRefusesToFreeTwice: a page on the free list twice would be two packets
// in one chunk.
func TestUmemRefusesToFreeTwice(t *testing.T) {
	u := newUmem(t, 8)
	pages := take(t, u, 2)
	u.Provider(1).FreePages([]pagepool.Page{pages[0], pages[0], 0, pages[1] &^ 1, 1_000_000_001, pages[1]})
	if got := u.FreeFrames(); got != 8 {
		t.Errorf("free frames: got %d, want 8", got)
	}
	if got := u.BadFrees(); got != 4 {
		t.Errorf("bad frees: got %d, want 4", got)
	}
	u.Provider(1).FreePages(pages)
	if got := u.FreeFrames(); got != 8 {
		t.Errorf("free frames after freeing all again: got %d, want 8", got)
	}
}

// TestUmemFreeListIsSharedByManyPools: however pools take and give back, each
// page is in one place.
func TestUmemFreeListIsSharedByManyPools(t *testing.T) {
	const frames, pools, rounds = 256, 4, 2000
	u := newUmem(t, frames)
	var wg sync.WaitGroup
	for id := range pagepool.MemID(pools) {
		wg.Go(func() {
			p := u.Provider(id + 1)
			dst := make([]pagepool.Page, 64)
			for r := range rounds {
				got := dst[:p.AllocPages(dst[:1+(r*7)%64])]
				for _, page := range got {
					if owner := u.MemOf(u.AddrOf(page)); owner != id+1 {
						t.Errorf("page %#x: got mem id %d, want %d", page, owner, id+1)
						return
					}
					u.Bytes(u.AddrOf(page), 1)[0] = byte(id)
				}
				p.FreePages(got)
			}
		})
	}
	wg.Wait()
	if got := u.FreeFrames(); got != frames {
		t.Errorf("free frames: got %d, want %d", got, frames)
	}
	seen := map[pagepool.Page]bool{}
	for _, p := range take(t, u, frames) {
		seen[p] = true
	}
	if len(seen) != frames || u.BadFrees() != 0 {
		t.Errorf("distinct pages: got %d of %d; bad frees: %d", len(seen), frames, u.BadFrees())
	}
}

// TestUmemFindsThePagesOfAPool wherever they are, for whoever takes a pool down.
func TestUmemFindsThePagesOfAPool(t *testing.T) {
	u := newUmem(t, 8)
	pages := take(t, u, 3)
	other := make([]pagepool.Page, 2)
	u.Provider(2).AllocPages(other)
	u.Provider(1).FreePages(pages[:1])
	if got := u.PagesOf(1); !slices.Equal(got, pages[1:]) {
		t.Errorf("mem id 1: got %v, want %v", got, pages[1:])
	}
	if got := u.PagesOf(2); !slices.Equal(got, other) {
		t.Errorf("mem id 2: got %v, want %v", got, other)
	}
}

func TestUmemSaysWhyItHasNoHugePages(t *testing.T) {
	u, err := xsk.NewUmem(xsk.UmemConfig{Frames: 64, FrameSize: 4096, HugePages: xsk.HugeNever})
	if err != nil {
		t.Fatal(err)
	}
	if huge, why := u.HugePages(); huge || !strings.Contains(why, "off") {
		t.Errorf("got %v, %q", huge, why)
	}
	if err := u.Close(); err != nil {
		t.Error(err)
	}
	// More than any machine has free: the fallback must not depend on luck.
	_, err = xsk.NewUmem(xsk.UmemConfig{Frames: 1 << 31, FrameSize: 2048, HugePages: xsk.HugeRequire})
	mustMention(t, err, "4194304 MiB", "huge pages of 2 MiB", "vm.nr_hugepages")
}

// TestIntegrationUmemUsesHugePages raises the number of huge pages for as long
// as it runs.
func TestIntegrationUmemUsesHugePages(t *testing.T) {
	labtest.Privileged(t)
	const file = "/proc/sys/vm/nr_hugepages"
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(old)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, "%d", n+2), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.WriteFile(file, old, 0) })
	p := newPair(t, 1, 0)
	u, err := xsk.NewUmem(xsk.UmemConfig{Frames: 1024 + 64, FrameSize: 2048, HugePages: xsk.HugeAuto})
	if err != nil {
		t.Fatal(err)
	}
	if huge, why := u.HugePages(); !huge || why != "2 huge pages of 2 MiB" {
		t.Errorf("got %v, %q", huge, why)
	}
	s := open(t, p.near, u, config(t, p.near, nearName, 0, 64))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := u.Close(); err != nil {
		t.Error(err)
	}
}

func BenchmarkUmem(b *testing.B) {
	u := newUmem(b, 4096)
	p := u.Provider(1)
	pages := make([]pagepool.Page, 64)
	b.Run("alloc-and-free-64", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.FreePages(pages[:p.AllocPages(pages)])
		}
	})
	p.AllocPages(pages)
	b.Run("resolve", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			page, id, _ := u.Resolve(uint64(i&63)<<11 | 256)
			sink += uint64(page) + uint64(id)
		}
	})
	b.Run("bytes", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			sink += uint64(len(u.Bytes(uint64(i&63)<<11, 60)))
		}
	})
}
