// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/xskfwd/xskfwd/bulk"
	"github.com/xskfwd/xskfwd/internal/config"
	"github.com/xskfwd/xskfwd/internal/datapath"
	"github.com/xskfwd/xskfwd/internal/metrics"
	"github.com/xskfwd/xskfwd/internal/xsk"
	"github.com/xskfwd/xskfwd/napi"
	"github.com/xskfwd/xskfwd/pagepool"
)

// plane is the packet path of the daemon: the UMEM, and for each served queue
// a socket, a pool and the poll instance that ties them together.
type plane struct {
	cfg     *config.Config
	log     *slog.Logger
	ports   []*port
	units   []*unit // units[i] has memory id i+1
	plan    datapath.Plan
	cpus    []int // by worker; -1: not pinned
	umem    *xsk.Umem
	mems    *bulk.MemTable
	workers []*datapath.Worker

	running sync.WaitGroup
	failed  chan error          // one error at most per worker
	final   []datapath.QueueCut // the cuts after the workers have stopped
}

// port is a configured port with what the kernel says of its device.
type port struct {
	name    string
	facts   facts
	queues  []int // device queue numbers
	units   []*unit
	partner *port
	gone    bool // the device is; guarded by observer.mu, written by the control plane
	// maxBytes is the longest frame the device takes. Written by the control
	// plane when the MTU changes, read by workers.
	maxBytes atomic.Uint32
}

// unit is one served queue.
type unit struct {
	port   *port
	number int
	id     pagepool.MemID
	worker int
	pool   *pagepool.PagePool
	sock   *xsk.Socket
	queue  *datapath.Queue

	xsk  metrics.Baseline[metrics.XSKStatistics]
	life *metrics.Life[metrics.XSKStatistics] // of sock
}

// openPlane makes everything the packet path needs. Nothing runs yet, and
// nothing is left if it fails.
func openPlane(cfg *config.Config, log *slog.Logger, ports []*port, wires [][2]int) (_ *plane, err error) {
	p := &plane{cfg: cfg, log: log, ports: ports, mems: bulk.NewMemTable()}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if err := p.makePlan(wires); err != nil {
		return nil, err
	}
	if err := p.openMemory(policyOf(cfg.Zerocopy)); err != nil {
		return nil, err
	}
	if err := p.makeQueues(); err != nil {
		return nil, err
	}
	if err := p.makeWorkers(); err != nil {
		return nil, err
	}
	return p, nil
}

// makePlan decides which worker serves what, and where it runs.
func (p *plane) makePlan(wires [][2]int) error {
	allowed, err := allowedCPUs()
	if err != nil {
		return err
	}
	widest := 0
	need := make([]datapath.PortQueues, len(p.ports))
	for i, port := range p.ports {
		need[i] = datapath.PortQueues{Name: port.name, Queues: port.queues}
		widest = max(widest, len(port.queues))
	}
	p.plan, err = datapath.MakePlan(need, wires, p.cfg.WorkerCount(widest, len(allowed)))
	if err != nil {
		return fmt.Errorf("--workers: %w", err)
	}
	p.cpus, err = placeWorkers(p.plan.Workers, p.cfg.CPUs, allowed)
	if err != nil {
		return err
	}
	for i, port := range p.ports {
		for j, number := range port.queues {
			u := &unit{port: port, number: number, id: pagepool.MemID(len(p.units) + 1), worker: p.plan.Owner[i][j]}
			port.units = append(port.units, u)
			p.units = append(p.units, u)
		}
	}
	return nil
}

func policyOf(z config.Zerocopy) xsk.Policy {
	switch z {
	case config.ZerocopyRequire:
		return xsk.Require
	case config.ZerocopyNever:
		return xsk.Never
	default:
		return xsk.Prefer
	}
}

// openMemory opens the UMEM, the pools and the sockets. A UMEM is all zero-copy
// or all copy: if a later port cannot do what an earlier one could, and zero-copy
// is only preferred, everything is opened again in copy mode.
func (p *plane) openMemory(policy xsk.Policy) error {
	err := p.openOnce(policy)
	if policy == xsk.Prefer && errors.Is(err, xsk.ErrMixedModes) {
		p.log.Info("not every port can do zero-copy: all ports copy", "refused", err)
		if err := p.closeMemory(); err != nil {
			return err
		}
		return p.openOnce(xsk.Never)
	}
	return err
}

func (p *plane) openOnce(policy xsk.Policy) error {
	frames, err := p.cfg.Frames(len(p.units))
	if err != nil {
		return fmt.Errorf("--umem-frames %d: %w", p.cfg.UmemFrames, err)
	}
	p.umem, err = xsk.NewUmem(xsk.UmemConfig{Frames: frames, FrameSize: p.cfg.FrameSize})
	if err != nil {
		return err
	}
	huge, why := p.umem.HugePages()
	p.log.Info("umem", "frames", frames, "frame_bytes", p.cfg.FrameSize, "huge_pages", huge, "why", why)
	for _, u := range p.units {
		if err := p.openUnit(u, policy); err != nil {
			return err
		}
	}
	return nil
}

// openUnit makes the queue's pool and binds its socket with the fill ring posted.
func (p *plane) openUnit(u *unit, policy xsk.Policy) error {
	name := fmt.Sprintf("%s-%d", u.port.name, u.number)
	var err error
	// No pool may take what another one needs to receive anything at all.
	provider := datapath.NewShare(p.umem.Provider(u.id), p.share())
	u.pool, err = pagepool.New(pagepool.Params{Name: name, ID: u.id, Owner: u.worker, Provider: provider})
	if err != nil {
		return err
	}
	if err := p.mems.Register(u.id, bulk.Mem{Pool: u.pool}); err != nil {
		return err
	}
	post := make([]pagepool.Page, p.fillTarget())
	post = post[:u.pool.AllocBulk(post)]
	u.sock, err = p.umem.Open(xsk.SocketConfig{
		Ifname: u.port.facts.ifname, Ifindex: u.port.facts.ifindex, Queue: uint32(u.number),
		FillEntries: uint32(p.cfg.FillRing), CompletionEntries: uint32(p.cfg.CompletionRing),
		RxEntries: uint32(p.cfg.RxRing), TxEntries: uint32(p.cfg.TxRing),
		Post: post, Zerocopy: policy, TxSkbBudget: uint32(p.cfg.TxRing),
	})
	if err != nil {
		u.pool.PutBulk(post, true)
		return withCure(err, policy)
	}
	u.life = u.xsk.Begin()
	u.queue = datapath.NewQueue(datapath.QueueConfig{
		Port: u.port.name, Number: u.number, Umem: p.umem, Socket: u.sock, Pool: u.pool, Mems: p.mems,
		FillTarget: uint32(p.fillTarget()), Posted: uint64(len(post)),
		BulkSize: p.cfg.BulkSize, BulkRule: ruleOf(p.cfg.BulkFlush),
	})
	p.logMode(u)
	return nil
}

// withCure adds to a refused bind what the user can do about it, where that is
// a setting.
func withCure(err error, policy xsk.Policy) error {
	if policy == xsk.Require && errors.Is(err, xsk.ErrNoZerocopy) {
		return fmt.Errorf("%w: --zerocopy prefer copies where it must", err)
	}
	return err
}

// share is how many frames of the UMEM each queue may have.
func (p *plane) share() int { return p.umem.Frames() / len(p.units) }

// fillTarget is how many pages a queue keeps posted: its fill ring full, unless
// the UMEM is so small that it has to leave half its share for frames that are
// being sent.
func (p *plane) fillTarget() int { return min(p.cfg.FillRing, p.share()/2) }

func ruleOf(f config.BulkFlush) bulk.Rule {
	if f == config.BulkChange {
		return bulk.Change
	}
	return bulk.Partition
}

func (p *plane) logMode(u *unit) {
	mode := u.sock.Mode()
	attrs := []any{"port", u.port.name, "queue", u.number, "zerocopy", mode.Zerocopy, "worker", u.worker, "tx_skb_budget", mode.TxSkbBudget}
	if mode.WhyCopy != nil {
		attrs = append(attrs, "why_copy", mode.WhyCopy)
	}
	p.log.Info("socket bound", attrs...)
}

// makeQueues connects each queue to the TX ring its worker uses on the partner.
func (p *plane) makeQueues() error {
	index := map[*port]int{}
	for i, port := range p.ports {
		index[port] = i
		for j, u := range port.units {
			if p.plan.Shared[i][j] {
				u.queue.Tx().Share()
			}
		}
	}
	for _, u := range p.units {
		out := u.port.partner
		tx := out.units[p.plan.TxQueue[index[out]][u.worker]]
		u.queue.Connect(tx.queue.Tx(), &out.maxBytes)
	}
	return nil
}

// makeWorkers makes the workers and gives them their queues.
func (p *plane) makeWorkers() error {
	for id := range p.plan.Workers {
		w, err := datapath.NewWorker(datapath.WorkerConfig{
			ID: id, CPU: p.cpus[id], Mode: modeOf(p.cfg.Poll), Mems: len(p.units) + 1,
			DriveDevice: p.cfg.Poll == config.PollBusy && p.preferBusyPoll(id),
		})
		if err != nil {
			return err
		}
		p.workers = append(p.workers, w)
	}
	timer := datapath.TimerConfig{Delay: p.cfg.TxTimer, Frames: p.cfg.TxFrames, Arm: armOf(p.cfg.TxTimerArm)}
	for _, u := range p.units {
		if err := p.workers[u.worker].Add(u.queue, timer); err != nil {
			return err
		}
	}
	return nil
}

func modeOf(m config.PollMode) napi.Mode {
	switch m {
	case config.PollInterrupt:
		return napi.Interrupt
	case config.PollBusy:
		return napi.Busy
	default:
		return napi.Adaptive
	}
}

func armOf(a config.TimerArm) napi.ArmRule {
	if a == config.ArmAlways {
		return napi.ArmAlways
	}
	return napi.ArmIdle
}

// start runs the workers.
func (p *plane) start() {
	p.failed = make(chan error, len(p.workers))
	for _, w := range p.workers {
		p.running.Go(func() {
			if err := w.Run(); err != nil {
				p.failed <- err
			}
		})
	}
}

// stop ends the workers and waits for them.
func (p *plane) stop() {
	for _, w := range p.workers {
		w.Stop()
	}
	p.running.Wait()
	p.final = p.cuts()
}

// cuts copies what the workers have published, worker by worker.
func (p *plane) cuts() []datapath.QueueCut {
	var cuts []datapath.QueueCut
	for _, w := range p.workers {
		var c datapath.WorkerCut
		w.Cut(&c)
		cuts = append(cuts, c.Queues...)
	}
	return cuts
}

// close releases everything. The workers have stopped.
func (p *plane) close() error {
	var errs []error
	for _, w := range p.workers {
		errs = append(errs, w.Close())
	}
	p.workers = nil
	return errors.Join(append(errs, p.closeMemory())...)
}

// closeMemory closes the sockets, takes back what the kernel had, and unmaps the
// UMEM.
func (p *plane) closeMemory() error {
	var errs []error
	for _, u := range p.units {
		if u.sock != nil {
			errs = append(errs, u.sock.Close())
			u.sock = nil
		}
	}
	for _, u := range p.units {
		if u.pool != nil {
			errs = append(errs, p.retire(u))
			p.mems.Unregister(u.id)
			u.pool, u.queue = nil, nil
		}
	}
	if p.umem != nil {
		errs = append(errs, p.umem.Close())
		p.umem = nil
	}
	return errors.Join(errs...)
}
