// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"testing"

	"github.com/asavie/xdp"
	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// xdpMd is struct xdp_md of linux/bpf.h, the context BPF_PROG_TEST_RUN takes.
type xdpMd struct {
	Data, DataEnd, DataMeta, IngressIfindex, RxQueueIndex, EgressIfindex uint32
}

const (
	xdpPass     = 2
	xdpRedirect = 4
)

// verdict runs the program on one frame of a queue. The kernel knows queues
// only of a device whose XDP is on, so the port must be attached natively.
func (l *lab) verdict(p *Port, queue uint32, frameBytes int) uint32 {
	l.t.Helper()
	got, err := p.objects.XskfwdRedirect.Run(&ebpf.RunOptions{
		Data:    make([]byte, frameBytes),
		Context: xdpMd{DataEnd: uint32(frameBytes), IngressIfindex: uint32(p.opts.Ifindex), RxQueueIndex: queue},
	})
	l.must(err)
	return got
}

func (l *lab) counters(p *Port) Counters {
	l.t.Helper()
	c, err := p.Counters()
	l.must(err)
	return c
}

func minus(a, b Counters) Counters {
	return Counters{a.Redirected - b.Redirected, a.Partner - b.Partner, a.Passed - b.Passed, a.Orphaned - b.Orphaned}
}

// queueState is what became of a queue before the frame comes.
type queueState func(l *lab, p *Port, queue int)

func neverRegistered(*lab, *Port, int) {}

func registered(l *lab, p *Port, queue int) { l.must(p.Register(queue, l.socket())) }

func unregistered(l *lab, p *Port, queue int) {
	registered(l, p, queue)
	l.must(p.Unregister(queue))
}

func socketClosed(l *lab, p *Port, queue int) {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	l.must(err)
	l.must(p.Register(queue, fd))
	l.must(unix.Close(fd))
}

// socketOnly is a Register that got half way: the socket map alone decides.
func socketOnly(l *lab, p *Port, queue int) {
	l.must(p.program.Sockets.Put(uint32(queue), uint32(l.socket())))
}

func queueOnly(l *lab, p *Port, queue int) {
	l.must(p.program.Queues.Put(uint32(queue), uint32(1)))
}

func TestIntegrationProgramGivesEveryFrameOneVerdictAndOneCount(t *testing.T) {
	toSocket := Counters{Redirected: 1}
	toPartner, toKernel := Counters{Partner: 1}, Counters{Passed: 1}
	lostToPartner, lostToKernel := Counters{Partner: 1, Orphaned: 1}, Counters{Passed: 1, Orphaned: 1}
	rows := []struct {
		name    string
		queue   int
		state   queueState
		partner bool
		verdict uint32
		want    Counters
	}{
		{"socket", 0, registered, false, xdpRedirect, toSocket},
		{"socket, with a partner", 0, registered, true, xdpRedirect, toSocket},
		{"socket on the last queue", 2, registered, true, xdpRedirect, toSocket},
		{"queue never registered", 1, neverRegistered, true, xdpRedirect, toPartner},
		{"queue never registered, no partner", 1, neverRegistered, false, xdpPass, toKernel},
		{"unregistered", 0, unregistered, true, xdpRedirect, toPartner},
		{"unregistered, no partner", 0, unregistered, false, xdpPass, toKernel},
		{"socket closed", 0, socketClosed, true, xdpRedirect, lostToPartner},
		{"socket closed, no partner", 0, socketClosed, false, xdpPass, lostToKernel},
		{"socket without queue entry", 0, socketOnly, true, xdpRedirect, toSocket},
		{"queue entry without socket", 0, queueOnly, true, xdpRedirect, lostToPartner},
		{"queue beyond the maps", 3, neverRegistered, true, xdpRedirect, toPartner},
		{"queue beyond the maps, no partner", 3, neverRegistered, false, xdpPass, toKernel},
	}
	inLab(t, func(l *lab) {
		r0, _ := l.veth("r0", "a0", 4)
		r1, _ := l.veth("r1", "b0", 1)
		for _, row := range rows {
			o := Options{Ifindex: r0, Ifname: "r0", Queues: 3, Mode: Native}
			if row.partner {
				o.Partner = r1
			}
			p := l.attach(o)
			row.state(l, p, row.queue)
			for _, frameBytes := range []int{14, 15, 59, 60, 1514, 3000} {
				before := l.counters(p)
				verdict := l.verdict(p, uint32(row.queue), frameBytes)
				if got := minus(l.counters(p), before); verdict != row.verdict || got != row.want {
					t.Errorf("%s, %d bytes: verdict %d counted as %+v, want %d as %+v", row.name, frameBytes, verdict, got, row.verdict, row.want)
				}
			}
			l.must(p.Detach())
		}
	})
}

func TestIntegrationPartnerChangesWhileAttached(t *testing.T) {
	inLab(t, func(l *lab) {
		r0, _ := l.veth("r0", "a0", 1)
		r1, _ := l.veth("r1", "b0", 1)
		p := l.attach(Options{Ifindex: r0, Ifname: "r0", Queues: 1, Mode: Native, Partner: r1})
		expect := func(when string, want uint32) {
			t.Helper()
			if got := l.verdict(p, 0, 60); got != want {
				t.Errorf("%s: verdict %d, want %d", when, got, want)
			}
		}
		expect("with a partner", xdpRedirect)
		l.must(p.SetPartner(0))
		expect("partner taken away", xdpPass)
		l.must(p.SetPartner(0))
		l.must(p.SetPartner(r1))
		expect("partner given back", xdpRedirect)
		l.remove("r1")
		expect("partner device gone", xdpPass)
		if err := p.SetPartner(r1); err == nil {
			t.Error("a device that is gone was accepted as the partner")
		}
	})
}

func TestIntegrationRegisterRefusesQueuesTheDeviceHasNot(t *testing.T) {
	inLab(t, func(l *lab) {
		r0, _ := l.veth("r0", "a0", 2)
		p := l.load(Options{Ifindex: r0, Ifname: "r0", Queues: 2})
		for _, queue := range []int{-1, 2, 1 << 32} {
			if err := p.Register(queue, l.socket()); err == nil {
				t.Errorf("register of queue %d of 2 was accepted", queue)
			}
			if err := p.Unregister(queue); err == nil {
				t.Errorf("unregister of queue %d of 2 was accepted", queue)
			}
		}
		if err := p.Register(0, -1); err == nil {
			t.Error("a descriptor that is not open was accepted")
		}
		l.must(p.Unregister(1)) // never registered
	})
}

// The verdict cannot see a socket that refuses. Its own statistics do.
func TestIntegrationFrameRefusedByItsSocketIsCountedByTheSocket(t *testing.T) {
	inLab(t, func(l *lab) {
		r0, a0 := l.veth("r0", "a0", 1)
		r1, _ := l.veth("r1", "b0", 1)
		p := l.load(Options{Ifindex: r0, Ifname: "r0", Queues: 1, Mode: Native, Partner: r1})
		socket, err := xdp.NewSocket(r0, 0, nil) // its fill ring stays empty
		l.must(err)
		l.cleanup(func() { socket.Close() })
		l.must(p.Register(0, socket.FD()))
		l.must(p.Attach())
		out := l.tap(a0)
		const frames = 10
		for n := range uint32(frames) {
			out.send(n)
		}
		l.wait("the program to see all frames", func() bool { return l.counters(p).Redirected == frames })
		if got := l.counters(p); got != (Counters{Redirected: frames}) {
			t.Errorf("counters %+v, want %d redirected and nothing else", got, frames)
		}
		l.wait("the socket to count what it refused", func() bool {
			stats, err := socket.Stats()
			l.must(err)
			return stats.KernelStats.Rx_fill_ring_empty_descs == frames
		})
		l.must(p.Detach())
	})
}
