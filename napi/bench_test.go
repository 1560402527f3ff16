// SPDX-License-Identifier: Apache-2.0

package napi

import (
	"fmt"
	"runtime"
	"testing"
)

func BenchmarkNapiScheduleCheckCompleteDone(b *testing.B) {
	n := New("n", &work{}, 0)
	n.move(onEnable)
	for b.Loop() {
		n.ScheduleCheck()
		n.CompleteDone(0)
	}
}

func BenchmarkNapiScheduleMissed(b *testing.B) {
	n := New("n", &work{}, 0)
	n.move(onEnable)
	n.ScheduleCheck()
	for b.Loop() {
		n.ScheduleCheck()
	}
}

func BenchmarkNapiIsScheduled(b *testing.B) {
	n := New("n", &work{}, 0)
	scheduled := false
	for b.Loop() {
		scheduled = n.IsScheduled()
	}
	_ = scheduled
}

func BenchmarkLoopInboxPushTake(b *testing.B) {
	l, _ := newTestLoop(b, LoopConfig{})
	n := New("n", &work{}, 0)
	for b.Loop() {
		l.inbox.push(n)
		l.inbox.takeAll()
	}
}

// endless is a Poller that does nothing but say that it did.
type endless struct{ packets int }

func (e endless) Poll(int) int  { return e.packets }
func (e endless) Pending() bool { return e.packets > 0 }

// BenchmarkLoopTurn is the cost of the loop itself: its pollers cost nothing.
func BenchmarkLoopTurn(b *testing.B) {
	for _, instances := range []int{1, 8} {
		for _, traffic := range []struct {
			name    string
			packets int
		}{{"idle", 0}, {"one-packet", 1}, {"whole-weight", DefaultWeight}} {
			b.Run(fmt.Sprintf("%s/%d", traffic.name, instances), func(b *testing.B) {
				l, _ := newTestLoop(b, LoopConfig{Mode: Busy})
				for range instances {
					l.Add(New("n", endless{traffic.packets}, 0))
				}
				l.mustTurn(b)
				before := l.stats.Polls
				for b.Loop() {
					l.mustTurn(b)
				}
				b.ReportMetric(float64(l.stats.Polls-before)/float64(b.N), "polls/op")
			})
		}
	}
}

func BenchmarkTxTimerSent(b *testing.B) {
	for _, rule := range []ArmRule{ArmIdle, ArmAlways} {
		for _, c := range []struct {
			name    string
			prepare func(r *timerRig)
			each    func(r *timerRig)
		}{
			{"scheduled", func(r *timerRig) { r.napi.Schedule(SourceIRQ) }, func(*timerRig) {}},
			{"running", func(r *timerRig) { r.Sent(1) }, func(*timerRig) {}},
			{"idle", func(*timerRig) {}, func(r *timerRig) { r.word.Store(0) }},
		} {
			b.Run(rule.String()+"/"+c.name, func(b *testing.B) {
				r := newTimerRig(b, TxTimerConfig{Delay: DefaultTxDelay, Rule: rule})
				c.prepare(r)
				for b.Loop() {
					c.each(r)
					r.Sent(1)
				}
				b.ReportMetric(float64(r.Stats().Syscalls)/float64(b.N), "syscalls/op")
			})
		}
	}
}

// BenchmarkGiveWay is what a locked thread pays for letting other goroutines run.
func BenchmarkGiveWay(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		runtime.Gosched()
	}
}
