// SPDX-License-Identifier: Apache-2.0

package xsk_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asavie/xdp"
	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
	"github.com/xskfwd/xskfwd/internal/xsk"
)

// mapped is how many lines of /proc/self/maps are of sockets.
func mapped(t testing.TB) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(maps), "socket:")
}

func descriptors(t testing.TB) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}

// leavesNothing fails if f leaves descriptors or mapped rings behind.
func leavesNothing(t *testing.T, f func()) {
	t.Helper()
	fds, maps := descriptors(t), mapped(t)
	f()
	if got := descriptors(t); got != fds {
		t.Errorf("descriptors: got %d, were %d", got, fds)
	}
	if got := mapped(t); got != maps {
		t.Errorf("mapped rings: got %d, were %d", got, maps)
	}
}

// TestIntegrationOpenAgainAndAgain is a reload, twenty times in one process. The
// kernel frees the queue late, so most binds meet EBUSY first.
func TestIntegrationOpenAgainAndAgain(t *testing.T) {
	p := newPair(t, 1, 0)
	u := mapUmem(t, 64)
	cfg := config(t, p.near, nearName, 0, 64)
	leavesNothing(t, func() {
		for i := range 20 {
			s, err := tryOpen(p.near, u, cfg)
			if err != nil {
				t.Fatalf("open %d: %v", i, err)
			}
			if got := mapped(t); got != 4 {
				t.Errorf("mapped rings while open: got %d, want 4", got)
			}
			for range 2 { // closing again does nothing
				if err := s.Close(); err != nil {
					t.Fatalf("close %d: %v", i, err)
				}
			}
		}
	})
}

// TestIntegrationOpenAndCloseAtTheSameTime has ports come and go on one UMEM, so
// that the socket named as its owner is often about to be closed.
func TestIntegrationOpenAndCloseAtTheSameTime(t *testing.T) {
	const queues = 3
	p := newPair(t, queues, 0)
	u := mapUmem(t, 64)
	leavesNothing(t, func() {
		var wg sync.WaitGroup
		for queue := range uint32(queues) {
			cfg := config(t, p.near, nearName, queue, 64)
			wg.Go(func() {
				for i := range 8 {
					s, err := tryOpen(p.near, u, cfg)
					if err != nil {
						t.Errorf("open %d of queue %d: %v", i, queue, err)
						return
					}
					if err := s.Close(); err != nil {
						t.Errorf("close %d of queue %d: %v", i, queue, err)
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestIntegrationOpenRefusals(t *testing.T) {
	p := newPair(t, 2, 0)
	u := mapUmem(t, 64)
	good := config(t, p.near, nearName, 0, 64)
	for _, c := range []struct {
		name   string
		change func(*xsk.SocketConfig)
		is     error
		says   []string
	}{
		{"fill-ring-511", func(c *xsk.SocketConfig) { c.FillEntries = 511 }, nil, []string{"fill ring size 511", "power of two"}},
		{"completion-ring-0", func(c *xsk.SocketConfig) { c.CompletionEntries = 0 }, nil, []string{"completion ring size 0", "power of two"}},
		{"rx-ring-3", func(c *xsk.SocketConfig) { c.RxEntries = 3 }, nil, []string{"rx ring size 3", "power of two"}},
		{"tx-ring-huge", func(c *xsk.SocketConfig) { c.TxEntries = 1 << 31 }, nil, []string{"tx ring size 2147483648", "4194304"}},
		{"more-pages-than-fill-ring", func(c *xsk.SocketConfig) { c.Post, c.FillEntries = take(t, u, 3), 2 }, nil, []string{"3 pages", "fill ring of 2"}},
		{"queue-beyond-device", func(c *xsk.SocketConfig) { c.Queue = 7 }, unix.EINVAL, []string{"has no queue 7"}},
		{"no-such-device", func(c *xsk.SocketConfig) { c.Ifindex = 4711 }, xsk.ErrNoDevice, []string{"index 4711", "namespace"}},
		{"zero-copy-required", func(c *xsk.SocketConfig) { c.Zerocopy = xsk.Require }, xsk.ErrNoZerocopy, []string{"zero-copy", "operation not supported"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := good
			c.change(&cfg)
			leavesNothing(t, func() {
				_, err := tryOpen(p.near, u, cfg)
				mustMention(t, err, append(c.says, "port near queue")...)
				if c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("got %v, want it to be %v", err, c.is)
				}
			})
		})
	}
}

func TestIntegrationZerocopyPolicies(t *testing.T) {
	p := newPair(t, 2, 0)
	u := mapUmem(t, 64)
	cfg := config(t, p.near, nearName, 0, 64)
	cfg.Post = take(t, u, 16)

	s := open(t, p.near, u, cfg) // Prefer
	if m := s.Mode(); m.Zerocopy || s.Zerocopy() || !errors.Is(m.WhyCopy, unix.EOPNOTSUPP) {
		t.Errorf("prefer on veth: got %+v, want copy because of EOPNOTSUPP", m)
	}
	if got := s.Fill.Len(); got != 16 {
		t.Errorf("pages posted after the second attempt: got %d, want 16", got)
	}
	cfg.Queue, cfg.Post = 1, nil
	cfg.Zerocopy = xsk.Require
	_, err := tryOpen(p.near, u, cfg)
	if !errors.Is(err, xsk.ErrNoZerocopy) || !errors.Is(err, xsk.ErrMixedModes) {
		t.Errorf("require on a umem in copy mode: got %v", err)
	}
	cfg.Zerocopy = xsk.Prefer
	joined := open(t, p.near, u, cfg)
	if m := joined.Mode(); m.Zerocopy || m.WhyCopy == nil {
		t.Errorf("prefer on a umem in copy mode: got %+v, want copy and why", m)
	}
	if err := joined.Close(); err != nil {
		t.Fatal(err)
	}
	cfg.Zerocopy = xsk.Never
	if m := open(t, p.near, u, cfg).Mode(); m.Zerocopy || m.WhyCopy != nil {
		t.Errorf("never: got %+v", m)
	}
}

// TestIntegrationZerocopyUmemTakesNoCopySocket stands in for a zero-copy device,
// which veth is not: its socket says that the UMEM is in zero-copy mode, and its
// descriptor makes the kernel refuse to share.
func TestIntegrationZerocopyUmemTakesNoCopySocket(t *testing.T) {
	p := newPair(t, 1, 0)
	u := mapUmem(t, 64)
	rings, _ := plainRings(t, 8)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	zerocopy, err := xsk.NewSocket(u, xsk.Identity{Ifname: "zc"}, xsk.Mode{Zerocopy: true}, rings,
		xsk.Kernel{FD: int(null.Fd()), Close: func() error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer zerocopy.Close()
	cfg := config(t, p.near, nearName, 0, 64)
	cfg.Zerocopy = xsk.Never
	if _, err := tryOpen(p.near, u, cfg); !errors.Is(err, xsk.ErrMixedModes) || errors.Is(err, xsk.ErrNoZerocopy) {
		t.Errorf("never: got %v, want %v", err, xsk.ErrMixedModes)
	}
	for _, policy := range []xsk.Policy{xsk.Prefer, xsk.Require} {
		cfg.Zerocopy = policy
		if _, err := tryOpen(p.near, u, cfg); !errors.Is(err, xsk.ErrMixedModes) || !errors.Is(err, xsk.ErrNoZerocopy) {
			t.Errorf("policy %d: got %v, want %v and %v", policy, err, xsk.ErrMixedModes, xsk.ErrNoZerocopy)
		}
	}
}

// TestIntegrationQueueInUse: the second gives up with a reason, the first is not
// disturbed, and the queue is to be had as soon as the first is closed.
func TestIntegrationQueueInUse(t *testing.T) {
	p := newPair(t, 1, 0)
	first, second := mapUmem(t, 64), mapUmem(t, 64)
	cfg := config(t, p.near, nearName, 0, 64)
	owner := open(t, p.near, first, cfg)

	busy := cfg
	busy.BusyTimeout = 30 * time.Millisecond
	leavesNothing(t, func() {
		_, err := tryOpen(p.near, second, busy)
		if !errors.Is(err, xsk.ErrQueueBusy) || !errors.Is(err, unix.EBUSY) {
			t.Errorf("got %v, want %v and EBUSY", err, xsk.ErrQueueBusy)
		}
		mustMention(t, err, "port near queue 0", "in use", "waited 30ms")
		_, err = tryOpen(p.near, first, busy)
		if !errors.Is(err, xsk.ErrQueueBusy) {
			t.Errorf("same umem: got %v, want %v", err, xsk.ErrQueueBusy)
		}
		mustMention(t, err, "of this process")
	})
	pages := take(t, first, 1)
	queueTx(t, owner, pages, []byte(etherHeader))
	if r := owner.KickTx(); r.State != xsk.Drained || r.Refused != 0 {
		t.Errorf("owner's kick: got %+v", r)
	}

	var wg sync.WaitGroup
	wg.Go(func() {
		s, err := tryOpen(p.near, second, cfg)
		if err != nil {
			t.Errorf("open while the owner closes: %v", err)
			return
		}
		s.Close()
	})
	if err := owner.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

// TestIntegrationSharedUmem has two devices with two queues each on one UMEM.
// A frame goes from one to the other without a copy, and the socket that
// registered the UMEM may be closed first.
func TestIntegrationSharedUmem(t *testing.T) {
	p := newPair(t, 2, 0)
	ns := labtest.NS(t)
	labtest.Veth(t, p.far, "out", ns, "sink", netlab.VethOptions{Queues: 2})
	u := mapUmem(t, 256)
	var sockets []*xsk.Socket
	for _, name := range []string{farName, "out"} {
		for queue := range uint32(2) {
			cfg := config(t, p.far, name, queue, 32)
			cfg.Post = take(t, u, 16)
			sockets = append(sockets, open(t, p.far, u, cfg))
		}
	}
	attach(t, p.far, farName, 2, sockets[:2]...)
	sender := mapUmem(t, 16)
	tx := open(t, p.near, sender, config(t, p.near, nearName, 1, 16))

	forward := func(s, out *xsk.Socket) {
		t.Helper()
		queueTx(t, tx, take(t, sender, 1), []byte(etherHeader+"over"))
		if r := tx.KickTx(); r.State != xsk.Drained {
			t.Fatalf("sender: got %+v", r)
		}
		labtest.WaitFor(t, "a frame", func() bool { return s.Rx.Len() == 1 })
		idx, _ := s.Rx.Peek(1)
		d := s.Rx.At(idx)
		s.Rx.Release(1)
		to, _ := out.Tx.Reserve(1)
		out.Tx.Set(to, d)
		out.Tx.Submit(1)
		if r := out.KickTx(); r.State != xsk.Drained || r.Refused != 0 {
			t.Fatalf("forwarder: got %+v", r)
		}
		labtest.WaitFor(t, "its completion", func() bool { return out.Completion.Len() == 1 })
		idx, _ = out.Completion.Peek(1)
		if got := out.Completion.At(idx); got != d.Addr {
			t.Errorf("completed: got address %#x, want %#x", got, d.Addr)
		}
		out.Completion.Release(1)
	}
	forward(sockets[1], sockets[2])
	if err := sockets[0].Close(); err != nil { // it registered the UMEM
		t.Fatal(err)
	}
	forward(sockets[1], sockets[3])
	cfg := config(t, p.far, farName, 0, 32) // another one is named as the owner
	sockets[0] = open(t, p.far, u, cfg)
	forward(sockets[1], sockets[2])

	// A socket whose device is gone cannot be named; the next one is.
	if err := p.far.Delete("out"); err != nil {
		t.Fatal(err)
	}
	if got := sockets[2].KickTx().State; got != xsk.Gone {
		t.Errorf("kick after the device was deleted: got %v, want %v", got, xsk.Gone)
	}
	for _, s := range []*xsk.Socket{sockets[0], sockets[1]} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	open(t, p.far, u, cfg) // only dead sockets are left: the UMEM is registered anew
}

// TestIntegrationSmallRingsCarryManyFrames sends 200 000 numbered frames through
// rings that all have different sizes.
func TestIntegrationSmallRingsCarryManyFrames(t *testing.T) {
	const total = 200_000
	p := newPair(t, 1, 0)
	near, far := mapUmem(t, 64), mapUmem(t, 128)
	cfg := config(t, p.near, nearName, 0, 0)
	cfg.FillEntries, cfg.CompletionEntries, cfg.RxEntries, cfg.TxEntries = 2, 8, 4, 16
	tx := open(t, p.near, near, cfg)
	cfg = config(t, p.far, farName, 0, 0)
	cfg.FillEntries, cfg.CompletionEntries, cfg.RxEntries, cfg.TxEntries = 64, 1, 32, 2
	cfg.Post = take(t, far, 64)
	rx := open(t, p.far, far, cfg)
	attach(t, p.far, farName, 1, rx)

	free := take(t, near, 64)
	sent, seen := uint64(0), uint64(0)
	stop := labtest.Context(t)
	for seen < total {
		if stop.Err() != nil {
			t.Fatalf("stuck: sent %d, received %d of %d", sent, seen, total)
		}
		// At most as many on the way as the RX ring holds: nothing may be lost.
		idx, room := tx.Tx.Reserve(uint32(min(total-sent, 32-(sent-seen), uint64(len(free)))))
		for i := range room {
			page := free[len(free)-1]
			free = free[:len(free)-1]
			frame := near.Bytes(near.AddrOf(page), 60)
			copy(frame, etherHeader)
			binary.BigEndian.PutUint64(frame[20:], sent)
			tx.Tx.Set(idx+i, xdp.Desc{Addr: near.AddrOf(page), Len: 60})
			sent++
		}
		tx.Tx.Submit(room)
		if r := tx.KickTx(); r.Refused != 0 || r.State > xsk.Again {
			t.Fatalf("kick after %d frames: %+v", sent, r)
		}
		idx, done := tx.Completion.Peek(64)
		for i := range done {
			free = append(free, near.PageOf(tx.Completion.At(idx+i)))
		}
		tx.Completion.Release(done)

		idx, got := rx.Rx.Peek(64)
		post, _ := rx.Fill.Reserve(got)
		for i := range got {
			d := rx.Rx.At(idx + i)
			if number := binary.BigEndian.Uint64(far.Bytes(d.Addr, d.Len)[20:]); number != seen {
				t.Fatalf("frame %d: got number %d", seen, number)
			}
			seen++
			rx.Fill.Set(post+i, d.Addr&^2047)
		}
		rx.Rx.Release(got)
		rx.Fill.Submit(got)
	}
	st, err := rx.Statistics()
	if err != nil || st.Rx_dropped+st.Rx_ring_full+st.Rx_invalid_descs != 0 {
		t.Errorf("statistics: got %+v, %v", st, err)
	}
}

// withoutIPCLock runs f on a thread, of its own, without CAP_IPC_LOCK.
func withoutIPCLock(ns *netlab.NS, f func() error) error {
	return ns.Do(func() error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&header, &data[0]); err != nil {
			return err
		}
		data[0].Effective &^= 1 << unix.CAP_IPC_LOCK
		if err := unix.Capset(&header, &data[0]); err != nil {
			return err
		}
		return f()
	})
}

// limitMemlock sets the soft limit for the test.
func limitMemlock(t *testing.T, bytes uint64) {
	t.Helper()
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: bytes, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Setrlimit(unix.RLIMIT_MEMLOCK, &old) })
}

func TestIntegrationMemlockLimitIsExplained(t *testing.T) {
	p := newPair(t, 1, 0)
	limitMemlock(t, 4<<20)
	u := mapUmem(t, 8192)
	cfg := config(t, p.near, nearName, 0, 64)
	leavesNothing(t, func() {
		err := withoutIPCLock(p.near, func() error { _, err := u.Open(cfg); return err })
		if !errors.Is(err, xsk.ErrMemlock) || !errors.Is(err, unix.ENOBUFS) {
			t.Errorf("got %v, want %v and ENOBUFS", err, xsk.ErrMemlock)
		}
		mustMention(t, err, "umem of 16 MiB", "RLIMIT_MEMLOCK is 4 MiB", "LimitMEMLOCK=", "CAP_IPC_LOCK")
	})
	s := open(t, p.near, u, cfg) // with the capability there is no limit
	if got := s.Umem().Size(); got != 16<<20 {
		t.Errorf("size: got %d", got)
	}
}

// TestIntegrationOpenAgainWithinMemlockLimit: the kernel counts the pages of a
// closed UMEM for a while, so a second registration may look too large.
func TestIntegrationOpenAgainWithinMemlockLimit(t *testing.T) {
	p := newPair(t, 1, 0)
	limitMemlock(t, 4<<20)
	u := mapUmem(t, 1536) // 3 MiB: twice would be too much
	cfg := config(t, p.near, nearName, 0, 64)
	for i := range 5 {
		err := withoutIPCLock(p.near, func() error {
			s, err := u.Open(cfg)
			if err != nil {
				return err
			}
			return s.Close()
		})
		if err != nil {
			t.Fatalf("open %d: %v", i, err)
		}
	}
}

func TestIntegrationUmemIsNotClosedUnderSockets(t *testing.T) {
	p := newPair(t, 1, 0)
	u := mapUmem(t, 64)
	s := open(t, p.near, u, config(t, p.near, nearName, 0, 64))
	mustMention(t, u.Close(), "1 sockets are open")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := tryOpen(p.near, u, config(t, p.near, nearName, 0, 64))
	if !errors.Is(err, xsk.ErrClosed) {
		t.Errorf("open on a closed umem: got %v, want %v", err, xsk.ErrClosed)
	}
}

// TestIntegrationScrapeRacesClose reads counters, as a scrape does, while the
// socket is closed.
func TestIntegrationScrapeRacesClose(t *testing.T) {
	p := newPair(t, 1, 0)
	u := mapUmem(t, 64)
	for range 3 {
		s := open(t, p.near, u, config(t, p.near, nearName, 0, 64))
		started := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := 0; ; i++ {
				s.RingEntries()
				_, err := s.Statistics()
				if i == 0 {
					close(started)
				}
				if err != nil {
					if !errors.Is(err, xsk.ErrClosed) {
						t.Errorf("got %v, want %v", err, xsk.ErrClosed)
					}
					return
				}
			}
		})
		<-started
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	}
}

// TestIntegrationClosedSocketLooksEmpty: a late look at a ring finds nothing,
// and touches no memory that was unmapped.
func TestIntegrationClosedSocketLooksEmpty(t *testing.T) {
	p := newPair(t, 1, 0)
	u := mapUmem(t, 64)
	cfg := config(t, p.near, nearName, 0, 64)
	cfg.Post = take(t, u, 8)
	s := open(t, p.near, u, cfg)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, fill := s.Fill.Reserve(8)
	_, completion := s.Completion.Peek(8)
	_, rx := s.Rx.Peek(8)
	_, tx := s.Tx.Reserve(8)
	if fill+completion+rx+tx != 0 || s.RingEntries() != (xsk.RingEntries{}) {
		t.Errorf("entries after Close: %d, %d, %d, %d, %+v", fill, completion, rx, tx, s.RingEntries())
	}
	// The descriptor's number may be somebody else's by now.
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if int(null.Fd()) != s.FD() {
		if err := unix.Dup3(int(null.Fd()), s.FD(), unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(s.FD())
	}
	if r := s.KickTx(); r.State != xsk.Gone || r.Errno != unix.EBADF {
		t.Errorf("kick after Close: got %+v, want device gone and EBADF", r)
	}
	if _, err := s.SetBusyPoll(xsk.BusyPoll{}); !errors.Is(err, xsk.ErrClosed) {
		t.Errorf("busy poll after Close: got %v, want %v", err, xsk.ErrClosed)
	}
}

func TestIntegrationBusyPollIsReadBack(t *testing.T) {
	p := newPair(t, 1, 0)
	u := mapUmem(t, 64)
	s := open(t, p.near, u, config(t, p.near, nearName, 0, 64))
	for _, want := range []xsk.BusyPoll{{Prefer: true, Usecs: 20, Budget: 64}, {Budget: 64}} {
		got, err := s.SetBusyPoll(want)
		if err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

// TestIntegrationTxBudgetIsCutToTheRing: the kernel refuses what is under 32 or
// over the ring.
func TestIntegrationTxBudgetIsCutToTheRing(t *testing.T) {
	p := newPair(t, 1, 0)
	u := mapUmem(t, 64)
	for _, c := range []struct{ entries, want, got uint32 }{{64, 0, 32}, {64, 1, 32}, {64, 50, 50}, {64, 1000, 64}, {16, 64, 32}, {32, 64, 32}} {
		cfg := config(t, p.near, nearName, 0, c.entries)
		cfg.TxSkbBudget = c.want
		s := open(t, p.near, u, cfg)
		if got := s.Mode().TxSkbBudget; got != c.got {
			t.Errorf("ring of %d, budget of %d: got %d, want %d", c.entries, c.want, got, c.got)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestIntegrationKickDoesNotAllocate measures the system calls as well.
func TestIntegrationKickDoesNotAllocate(t *testing.T) {
	p := newPair(t, 1, 0)
	u := mapUmem(t, 64)
	s := open(t, p.near, u, config(t, p.near, nearName, 0, 64))
	if n := testing.AllocsPerRun(100, func() { s.KickTx(); s.KickRx() }); n != 0 {
		t.Errorf("allocations: got %v, want 0", n)
	}
}

// BenchmarkIntegrationTransmit sends 60-byte frames to a veth whose peer drops
// them; per op is per frame. The budget is what one sendto moves.
func BenchmarkIntegrationTransmit(b *testing.B) {
	for _, budget := range []uint32{32, 256} {
		b.Run(fmt.Sprintf("budget-%d", budget), func(b *testing.B) {
			p := newPair(b, 1, 0)
			u := mapUmem(b, 512)
			cfg := config(b, p.near, nearName, 0, 512)
			cfg.TxSkbBudget = budget
			s := open(b, p.near, u, cfg)
			pages := take(b, u, 256)
			calls := uint64(0)
			b.ReportAllocs()
			for sent := 0; sent < b.N; {
				idx, _ := s.Tx.Reserve(256)
				for i, page := range pages {
					s.Tx.Set(idx+uint32(i), xdp.Desc{Addr: u.AddrOf(page), Len: 60})
				}
				s.Tx.Submit(256)
				for done := uint32(0); done < 256; {
					calls += uint64(s.KickTx().Calls)
					_, n := s.Completion.Peek(256)
					s.Completion.Release(n)
					done += n
				}
				sent += 256
			}
			b.ReportMetric(float64(calls)/float64(b.N), "calls/frame")
		})
	}
}

func BenchmarkIntegrationKickOfEmptyRing(b *testing.B) {
	p := newPair(b, 1, 0)
	u := mapUmem(b, 64)
	s := open(b, p.near, u, config(b, p.near, nearName, 0, 64))
	b.ReportAllocs()
	for b.Loop() {
		s.KickTx()
	}
}
