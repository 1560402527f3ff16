// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xskfwd/xskfwd/bulk"
	"github.com/xskfwd/xskfwd/internal/xsk"
	"github.com/xskfwd/xskfwd/internal/xsk/xsktest"
	"github.com/xskfwd/xskfwd/napi"
	"github.com/xskfwd/xskfwd/pagepool"
)

const (
	testMTU = 1500
	// largest is the longest frame that leaves through a port of testMTU.
	largest = testMTU + 18
)

// defaultTimer is what the daemon uses.
func defaultTimer() TimerConfig {
	return TimerConfig{Delay: napi.DefaultTxDelay, Frames: napi.DefaultTxFrames}
}

// rigConfig describes a forwarder on fake kernels. Zero values: two ports of one
// queue each, one worker, 256 frames a queue, rings of 64.
type rigConfig struct {
	queues     []int // of each port; ports 0 and 1 are wired, 2 and 3, and so on
	workers    int
	frames     int
	share      int    // of each pool; 0: no bound
	fillTarget uint32 // 0: the fill ring
	kernel     xsktest.Config
	bulkSize   int // 0: 16
	rule       bulk.Rule
	timer      TimerConfig
	mode       napi.Mode
}

func (c rigConfig) withDefaults() rigConfig {
	if c.queues == nil {
		c.queues = []int{1, 1}
	}
	c.workers = max(c.workers, 1)
	total := 0
	for _, n := range c.queues {
		total += n
	}
	if c.frames == 0 {
		c.frames = 256 * total
	}
	if c.kernel.FillEntries == 0 {
		c.kernel.FillEntries = 64
	}
	if c.share == 0 {
		c.share = c.frames
	}
	if c.fillTarget == 0 {
		c.fillTarget = c.kernel.FillEntries
	}
	if c.bulkSize == 0 {
		c.bulkSize = bulk.QueueSize
	}
	return c
}

// rig is the forwarder: units by port and queue, and the workers that own them.
type rig struct {
	t       testing.TB
	cfg     rigConfig
	plan    Plan
	umem    *xsk.Umem
	units   [][]*unit
	all     []*unit // all[i] has memory id i+1
	workers []*Worker
	running sync.WaitGroup
	runErrs chan error
}

// unit is one queue of one port.
type unit struct {
	port     int
	pool     *pagepool.PagePool
	k        *xsktest.Kernel
	q        *Queue
	maxBytes *atomic.Uint32 // of the port
}

// newRig builds a forwarder that does not run: tests poll, or call run.
func newRig(t testing.TB, cfg rigConfig) *rig {
	t.Helper()
	cfg = cfg.withDefaults()
	r := &rig{t: t, cfg: cfg}
	var err error
	r.umem, err = xsk.NewUmemOver(make([]byte, cfg.frames*2048), 2048)
	r.must(err)
	r.makePlan()
	r.makeUnits()
	r.connect()
	r.makeWorkers()
	t.Cleanup(r.close)
	return r
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) makePlan() {
	ports := make([]PortQueues, len(r.cfg.queues))
	for i, n := range r.cfg.queues {
		ports[i] = portOf(fmt.Sprintf("p%d", i), n)
	}
	var err error
	r.plan, err = MakePlan(ports, pairs(len(ports)), r.cfg.workers)
	r.must(err)
}

// portOf is a port with n queues.
func portOf(name string, n int) PortQueues {
	p := PortQueues{Name: name}
	for q := range n {
		p.Queues = append(p.Queues, q)
	}
	return p
}

// pairs wires neighbours.
func pairs(ports int) (wires [][2]int) {
	for i := 0; i+1 < ports; i += 2 {
		wires = append(wires, [2]int{i, i + 1})
	}
	return wires
}

func (r *rig) makeUnits() {
	mems := bulk.NewMemTable()
	for port, n := range r.cfg.queues {
		maxBytes := new(atomic.Uint32)
		maxBytes.Store(MaxFrameBytes(testMTU))
		var units []*unit
		for number := range n {
			u := r.makeUnit(port, number, mems)
			u.maxBytes = maxBytes
			units = append(units, u)
		}
		r.units = append(r.units, units)
	}
}

func (r *rig) makeUnit(port, number int, mems *bulk.MemTable) *unit {
	u := &unit{port: port}
	r.all = append(r.all, u)
	id := pagepool.MemID(len(r.all))
	name := fmt.Sprintf("p%d", port)
	var err error
	u.pool, err = pagepool.New(pagepool.Params{
		Name: fmt.Sprintf("%s-%d", name, number), ID: id, Owner: r.plan.Owner[port][number], Provider: NewShare(r.umem.Provider(id), r.cfg.share),
	})
	r.must(err)
	r.must(mems.Register(id, bulk.Mem{Pool: u.pool}))
	kernel := r.cfg.kernel
	kernel.Ifname, kernel.Ifindex, kernel.Queue = name, port+1, uint32(number)
	kernel.Notify = func() { u.q.Napi().Schedule(napi.SourceIRQ) }
	u.k, err = xsktest.New(r.umem, kernel)
	r.must(err)
	u.q = NewQueue(QueueConfig{
		Port: name, Number: number, Umem: r.umem, Socket: u.k.Socket, Pool: u.pool, Mems: mems,
		FillTarget: r.cfg.fillTarget, BulkSize: r.cfg.bulkSize, BulkRule: r.cfg.rule,
	})
	return u
}

// connect wires the ports and posts the first pages.
func (r *rig) connect() {
	for port, units := range r.units {
		for i, u := range units {
			if r.plan.Shared[port][i] {
				u.q.Tx().Share()
			}
			partner := port ^ 1
			tx := r.units[partner][r.plan.TxQueue[partner][r.plan.Owner[port][i]]]
			u.q.Connect(tx.q.Tx(), tx.maxBytes)
		}
	}
	for _, u := range r.all {
		u.q.refill()
	}
}

func (r *rig) makeWorkers() {
	for id := range r.plan.Workers {
		w, err := NewWorker(WorkerConfig{ID: id, CPU: -1, Mode: r.cfg.mode, Mems: len(r.all) + 1})
		r.must(err)
		r.workers = append(r.workers, w)
	}
	for port, units := range r.units {
		for i, u := range units {
			r.must(r.workers[r.plan.Owner[port][i]].Add(u.q, r.cfg.timer))
		}
	}
}

// run starts the workers.
func (r *rig) run() {
	r.runErrs = make(chan error, len(r.workers))
	for _, w := range r.workers {
		r.running.Go(func() { r.runErrs <- w.Run() })
	}
}

// stop ends the workers and waits for them.
func (r *rig) stop() {
	r.t.Helper()
	for _, w := range r.workers {
		w.Stop()
	}
	r.running.Wait()
	if r.runErrs == nil {
		return
	}
	close(r.runErrs)
	for err := range r.runErrs {
		r.must(err)
	}
	r.runErrs = nil
}

// close releases everything. Every page must be accounted for: those in the
// pools go home by Flush, those with the kernel are found in the UMEM's table.
func (r *rig) close() {
	r.stop()
	for _, w := range r.workers {
		r.must(w.Close())
	}
	for _, u := range r.all {
		r.must(u.k.Socket.Close())
		u.pool.Retire()
		left := r.umem.PagesOf(u.pool.ID())
		u.pool.PutBulk(left, true)
		if n := u.pool.Inflight(); n != 0 {
			r.t.Errorf("pool %s: %d pages in flight after its end", u.pool.Name(), n)
		}
	}
	if free, bad := r.umem.FreeFrames(), r.umem.BadFrees(); free != r.umem.Frames() || bad != 0 {
		r.t.Errorf("umem: %d of %d frames free at the end, %d freed twice", free, r.umem.Frames(), bad)
	}
	r.must(r.umem.Close())
}

// poll polls every queue once, in order, as one round of a loop does.
func (r *rig) poll() (received int) {
	for _, u := range r.all {
		received += u.q.Poll(Weight)
	}
	return received
}

// cuts are the cuts of all queues as they are now. Nothing may run.
func (r *rig) cuts() []QueueCut {
	cuts := make([]QueueCut, len(r.all))
	for i, u := range r.all {
		u.q.cut(&cuts[i])
	}
	return cuts
}

// census is the census of a unit's pool now. Nothing may run.
func (r *rig) census(u *unit) Census {
	for i := range r.all {
		if r.all[i] == u {
			return TakeCensus(i, r.cuts())
		}
	}
	r.t.Fatal("no such unit")
	return Census{}
}

const frameHeader = 14 + 4 + 8

// frame is a frame of n bytes, of a flow and with a number in it. What follows
// the header depends on both, so that a wrong byte shows.
func frame(flow uint32, number uint64, n int) []byte {
	f := make([]byte, max(n, frameHeader))
	copy(f, "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x88\xb5")
	binary.BigEndian.PutUint32(f[14:], flow)
	binary.BigEndian.PutUint64(f[18:], number)
	for i := frameHeader; i < len(f); i++ {
		f[i] = byte(uint64(i) + number*7 + uint64(flow)*31)
	}
	return f[:n]
}

// frames are n frames of 64 bytes.
func frames(n int) [][]byte {
	fs := make([][]byte, n)
	for i := range fs {
		fs[i] = frame(0, uint64(i), 64)
	}
	return fs
}

// deliver hands frames to a fake, all of which have to fit.
func deliver(t testing.TB, k *xsktest.Kernel, fs ...[]byte) {
	t.Helper()
	if n := k.Deliver(fs...); n != len(fs) {
		t.Fatalf("delivered: got %d of %d", n, len(fs))
	}
}

// expect compares a number.
func expect[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// deadline bounds waits; only a test that would hang reaches it.
const deadline = 60 * time.Second
