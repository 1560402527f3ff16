// SPDX-License-Identifier: Apache-2.0

package epoll_test

import (
	"fmt"
	"time"

	"github.com/xskfwd/xskfwd/internal/epoll"
	"github.com/xskfwd/xskfwd/napi"
)

// port is a Poller that sends one frame in its first poll and reaps it in a later one.
type port struct {
	timer *napi.TxTimer
	loop  *napi.Loop
	polls int
}

func (p *port) Poll(int) int {
	p.polls++
	if p.polls == 1 {
		p.timer.Sent(1)
		return 1
	}
	p.timer.Reaped(1)
	p.loop.Stop()
	return 0
}

func (p *port) Pending() bool { return false }

// A worker: a loop on its Waiter, and one instance whose timer brings home the frame that
// nothing else would.
func Example() {
	waiter, err := epoll.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer waiter.Close()
	kernelTimer, err := epoll.NewTimer()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer kernelTimer.Close()
	loop, err := napi.NewLoop(napi.LoopConfig{Waiter: waiter, Yield: epoll.Yield})
	if err != nil {
		fmt.Println(err)
		return
	}

	p := &port{loop: loop}
	n := napi.New("eth0/0", p, napi.DefaultWeight)
	p.timer, err = napi.NewTxTimer(n, kernelTimer, napi.TxTimerConfig{Delay: 2 * time.Millisecond, Frames: napi.DefaultTxFrames})
	if err != nil {
		fmt.Println(err)
		return
	}
	index := loop.Add(n)
	if err := waiter.Add(kernelTimer.FD(), napi.Event{Napi: index, Source: napi.SourceTimer}); err != nil {
		fmt.Println(err)
		return
	}

	if err := loop.Run(); err != nil {
		fmt.Println(err)
		return
	}
	s := p.timer.Stats()
	fmt.Printf("polls %d, timer armed %d, fired %d, frames out %d\n", p.polls, s.Armed, s.Fired, s.Unreaped)
	// Output: polls 2, timer armed 1, fired 1, frames out 0
}
