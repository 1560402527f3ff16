// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/bulk"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
	"github.com/xskfwd/xskfwd/internal/xsk/xsktest"
	"github.com/xskfwd/xskfwd/napi"
)

// silence waits until all workers run and have gone to sleep.
func (r *rig) silence() {
	r.t.Helper()
	labtest.WaitFor(r.t, "silence", func() bool {
		for _, w := range r.workers {
			var c WorkerCut
			if w.Cut(&c); c.Queues == nil || w.beat.Load() != 0 {
				return false
			}
		}
		for _, u := range r.all {
			if u.q.Napi().IsScheduled() {
				return false
			}
		}
		return true
	})
}

// mustSend waits until a fake has sent so many frames.
func (r *rig) mustSend(k *xsktest.Kernel, n int) {
	r.t.Helper()
	labtest.WaitFor(r.t, fmt.Sprintf("%d frames to be sent", n), func() bool { return k.SentCount() >= uint64(n) })
}

// settle waits until all frames are home, then stops and compares the census
// with what is found by looking.
func (r *rig) settle() {
	r.t.Helper()
	labtest.WaitFor(r.t, "all frames to come home", func() bool {
		for _, u := range r.all {
			if u.k.Socket.Rx.Len()+u.k.Socket.Tx.Len() > 0 || u.k.InFlight() > 0 {
				return false
			}
			if u.k.Socket.Completion.Len() > 0 {
				u.q.Napi().Schedule(napi.SourceKick) // the timer may be off
				return false
			}
		}
		return true
	})
	r.stop()
	r.mustBeConsistent("when idle")
	for i, c := range r.published() {
		expect(r.t, "published counters are the last ones", c.Counters, r.all[i].q.c)
	}
}

// published are the cuts the workers have published, in unit order.
func (r *rig) published() []QueueCut {
	cuts := make([]QueueCut, len(r.all))
	for _, w := range r.workers {
		var c WorkerCut
		w.Cut(&c)
		for i := range c.Queues {
			cuts[int(c.Queues[i].Pool.ID())-1] = c.Queues[i]
		}
	}
	return cuts
}

func TestWorkerSendsALoneBurstWithoutLaterTraffic(t *testing.T) {
	for _, timer := range []TimerConfig{defaultTimer(), {Frames: 25}, {}} {
		for _, size := range []int{1, 16} {
			for _, mode := range []napi.Mode{napi.Interrupt, napi.Adaptive, napi.Busy} {
				t.Run(fmt.Sprintf("timer-%v-frames-%d/bulk-%d/%v", timer.Delay, timer.Frames, size, mode), func(t *testing.T) {
					r := newRig(t, rigConfig{
						timer: timer, bulkSize: size, mode: mode, frames: 2048,
						kernel: xsktest.Config{FillEntries: 512, CompletionEntries: 256, RxEntries: 256, TxEntries: 256},
					})
					r.run()
					in, out := r.all[0], r.all[1]
					sent := 0
					for _, n := range []int{1, 15, 16, 17, 63, 64, 65, 200} {
						if mode != napi.Busy {
							r.silence()
						}
						labtest.WaitFor(t, "pages to be posted", func() bool { return in.k.Socket.Fill.Len() >= uint32(n) })
						deliver(t, in.k, frames(n)...)
						sent += n
						r.mustSend(out.k, sent)
					}
					r.settle()
				})
			}
		}
	}
}

func TestWorkerDrainsTheTxRingThroughASmallCompletionRing(t *testing.T) {
	for _, workers := range []int{1, 2} {
		for _, timer := range []TimerConfig{defaultTimer(), {}} {
			t.Run(fmt.Sprintf("workers-%d/timer-%v", workers, timer.Delay), func(t *testing.T) {
				r := newRig(t, rigConfig{
					workers: workers, timer: timer, mode: napi.Interrupt,
					kernel: xsktest.Config{FillEntries: 256, CompletionEntries: 4, RxEntries: 256, TxEntries: 256},
				})
				r.run()
				deliver(t, r.all[0].k, frames(200)...)
				r.mustSend(r.all[1].k, 200)
				r.settle()
				expect(t, "dropped", r.all[0].q.c.Dropped(), 0)
				// Fifty times four frames: not each four by an expiry.
				if fired := r.all[1].q.tx.timer.Stats().Fired; fired >= 25 {
					t.Errorf("the timer expired %d times, though completions were there to be reaped", fired)
				}
			})
		}
	}
}

// With the coalesce timer off nobody else would ever look at the ring again.
func TestWorkerSendsParkedFramesAfterLinkUpWithoutTraffic(t *testing.T) {
	for _, timer := range []TimerConfig{defaultTimer(), {}} {
		for _, workers := range []int{1, 2} {
			for _, stop := range []string{"link", "no-buffers"} {
				t.Run(fmt.Sprintf("%s/timer-%v/workers-%d", stop, timer.Delay, workers), func(t *testing.T) {
					r := newRig(t, rigConfig{timer: timer, workers: workers, mode: napi.Interrupt})
					in, out := r.all[0], r.all[1]
					block := func(on bool) {
						if stop == "link" {
							out.k.SetLink(!on)
						} else if on {
							out.k.SetFault(unix.ENOBUFS)
						} else {
							out.k.SetFault(0)
						}
					}
					block(true)
					r.run()
					r.silence()
					deliver(t, in.k, frames(10)...)
					labtest.WaitFor(t, "frames to be parked", func() bool { return out.k.Socket.Tx.Len() == 10 })
					r.silence()
					block(false)
					r.mustSend(out.k, 10)
					r.settle()
				})
			}
		}
	}
}

// The receiving port is left without a page while all are on their way out.
// When they are home it must receive again, though no event says so.
func TestWorkerReceivesAgainAfterAllPagesWereOnTheirWayOut(t *testing.T) {
	for _, workers := range []int{1, 2} {
		for _, hold := range []bool{false, true} {
			t.Run(fmt.Sprintf("workers-%d/held-%t", workers, hold), func(t *testing.T) {
				r := newRig(t, rigConfig{
					workers: workers, timer: defaultTimer(), mode: napi.Interrupt, frames: 64, fillTarget: 16,
					kernel: xsktest.Config{HoldCompletions: hold},
				})
				in, out := r.all[0], r.all[1] // the first pool has all frames
				r.run()
				sent := 0
				burst := func() {
					labtest.WaitFor(t, "pages to be posted", func() bool { return in.k.Socket.Fill.Len() > 0 })
					r.silence()
					n := int(in.k.Socket.Fill.Len())
					deliver(t, in.k, frames(n)...)
					sent += n
					r.mustSend(out.k, sent)
				}
				for i := 0; hold && out.k.InFlight() < 64 || !hold && i < 8; i++ {
					burst()
				}
				if hold {
					r.silence()
					expect(t, "delivered without a page", in.k.Deliver(frames(1)...), 0)
					out.k.Complete(64)
				}
				burst()
				out.k.Complete(64)
				r.settle()
			})
		}
	}
}

func TestWorkerIsIdleWhileAFrameIsStuck(t *testing.T) {
	r := newRig(t, rigConfig{timer: defaultTimer(), mode: napi.Interrupt})
	in, out := r.all[0], r.all[1]
	out.k.SetLink(false)
	r.run()
	deliver(t, in.k, frames(1)...)
	labtest.WaitFor(t, "the frame to be parked", func() bool { return out.k.Socket.Tx.Len() == 1 })
	owner := func() QueueCut { return r.published()[1] }
	labtest.WaitFor(t, "six retries", func() bool { return owner().Counters.Retries.Calls >= 6 })
	// Each look but the first, which the transmitter asked for, was the timer's,
	// and that backs off.
	if c := owner(); c.Counters.Retries.Calls > c.Timer.Fired+2 {
		t.Errorf("%d retries, the timer expired %d times", c.Counters.Retries.Calls, c.Timer.Fired)
	}
	out.k.SetLink(true)
	r.mustSend(out.k, 1)
	r.settle()
}

// flow is what one queue received and where it has to come out.
type flow struct {
	in, out *unit
	id      uint32
	next    uint64 // the number expected next
}

// check compares a sent frame with what the flow expects next.
func (f *flow) check(t testing.TB, got []byte) {
	if want := frame(f.id, f.next, lengthOf(f.next)); !bytes.Equal(got, want) {
		t.Fatalf("flow %d, frame %d: got %x, want %x", f.id, f.next, got, want)
	}
	f.next++
}

// lengthOf spreads lengths over what may leave.
func lengthOf(n uint64) int { return frameHeader + int(n*131%(largest-frameHeader+1)) }

func TestWorkersDeliverEveryFrameOnceInOrderAndEveryCutAddsUp(t *testing.T) {
	type kind struct {
		name string
		cfg  rigConfig
	}
	var kinds []kind
	add := func(name string, cfg rigConfig) { kinds = append(kinds, kind{name, cfg}) }
	add("one-worker", rigConfig{queues: []int{2, 2}, timer: defaultTimer()})
	add("two-workers-own-queues", rigConfig{queues: []int{2, 2}, workers: 2, timer: defaultTimer()})
	add("two-workers-shared", rigConfig{queues: []int{1, 1}, workers: 2, timer: defaultTimer()})
	add("three-workers-shared", rigConfig{queues: []int{2, 1}, workers: 3, timer: defaultTimer()})
	add("three-workers-four-ports", rigConfig{queues: []int{2, 1, 1, 3}, workers: 3, timer: defaultTimer()})
	for _, rule := range []bulk.Rule{bulk.Partition, bulk.Change} {
		for _, size := range []int{1, 16} {
			add(fmt.Sprintf("shared-bulk-%d-%s", size, ruleName(rule)),
				rigConfig{queues: []int{3, 1}, workers: 3, timer: defaultTimer(), bulkSize: size, rule: rule})
		}
	}
	add("always", rigConfig{queues: []int{2, 1}, workers: 3, timer: TimerConfig{Delay: time.Millisecond, Frames: 25, Arm: napi.ArmAlways}})
	add("timer-off", rigConfig{queues: []int{2, 1}, workers: 3, timer: TimerConfig{Frames: 25}})
	add("interrupt", rigConfig{queues: []int{2, 1}, workers: 2, timer: defaultTimer(), mode: napi.Interrupt})
	add("busy", rigConfig{queues: []int{1, 1}, workers: 2, timer: defaultTimer(), mode: napi.Busy})
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) { streamThrough(t, k.cfg) })
	}
}

// streamThrough sends numbered frames into every queue while workers run and
// others read cuts all the time.
func streamThrough(t *testing.T, cfg rigConfig) {
	const total, window, wantCuts = 1500, 32, 1000
	cfg.kernel = xsktest.Config{FillEntries: 128, RxEntries: 128, TxEntries: 256, CompletionEntries: 128, FirstIndex: ^uint32(0) - 500}
	r := newRig(t, cfg)
	flows := make([]*flow, len(r.all))
	byID := map[uint32]*flow{}
	for i, u := range r.all {
		flows[i] = &flow{in: u, out: r.unitOf(u.q.out.tx), id: uint32(i)}
		byID[uint32(i)] = flows[i]
	}
	r.run()
	end, cuts := r.readCuts()
	given := make([]uint64, len(flows))
	stop := time.Now().Add(deadline)
	for left := len(flows) * total; left > 0; {
		for i, f := range flows {
			// What does not fit now is given again: the kernel would drop it.
			for given[i] < total && given[i]-f.next < window && f.in.k.Deliver(frame(f.id, given[i], lengthOf(given[i]))) == 1 {
				given[i]++
			}
		}
		for _, u := range r.all {
			for _, got := range u.k.Sent() {
				f := byID[uint32(got[17])]
				if f.out != u {
					t.Fatalf("flow %d left through %s", f.id, u.q.port)
				}
				f.check(t, got)
				left--
			}
		}
		if time.Now().After(stop) {
			t.Fatalf("%d frames are missing", left)
		}
		unix.SyscallNoError(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
	labtest.WaitFor(t, "enough cuts", func() bool { return cuts.Load() >= wantCuts })
	end()
	r.settle()
	for i, u := range r.all {
		expect(t, "frames given and received", u.q.c.RxPackets, given[i])
		expect(t, "frames dropped", u.q.c.Dropped(), 0)
	}
}

// unitOf is the unit a TX ring belongs to.
func (r *rig) unitOf(tx *TxQueue) *unit {
	for _, u := range r.all {
		if u.q.tx == tx {
			return u
		}
	}
	r.t.Fatal("a TX ring of no unit")
	return nil
}
