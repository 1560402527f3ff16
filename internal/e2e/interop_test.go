// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/binary"
	"net"
	"testing"

	"github.com/asavie/xdp"

	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// The ends speak AF_XDP too, by an implementation that is not ours: what
// asavie/xdp sends through the wire, asavie/xdp receives, once, in order.
func TestIntegrationOtherImplementationAtBothEnds(t *testing.T) {
	const frames = 2_000
	r := newRig(t, netlab.VethOptions{})
	r.start()
	near, far := r.foreignSocket(r.a, "a0"), r.foreignSocket(r.b, "b0")
	received := 0
	for sent := 0; received < frames; {
		far.Fill(far.GetDescs(far.NumFreeFillSlots()))
		if sent < frames && sent-received < 64 {
			sent += sendNumbered(near, sent, min(16, frames-sent))
		}
		near.Complete(near.NumCompleted())
		labtest.WaitFor(t, "a frame from the other end", func() bool { return far.NumReceived() > 0 })
		for _, d := range far.Receive(far.NumReceived()) {
			frame := far.GetFrame(d)
			if n := binary.BigEndian.Uint32(frame[60:]); len(frame) != 64 || n != uint32(received) {
				t.Fatalf("frame %d of %d bytes came, want frame %d of 64", n, len(frame), received)
			}
			received++
		}
	}
	r.stop()
}

// foreignSocket opens an asavie/xdp socket on queue 0 of a host's device, with
// its program attached.
func (r *rig) foreignSocket(ns *netlab.NS, ifname string) *xdp.Socket {
	r.t.Helper()
	var socket *xdp.Socket
	err := ns.Do(func() error {
		device, err := net.InterfaceByName(ifname)
		if err != nil {
			return err
		}
		program, err := xdp.NewProgram(1)
		if err != nil {
			return err
		}
		r.t.Cleanup(func() { _ = program.Close() })
		if err := program.Attach(device.Index); err != nil {
			return err
		}
		if socket, err = xdp.NewSocket(device.Index, 0, nil); err != nil {
			return err
		}
		r.t.Cleanup(func() { _ = socket.Close() })
		return program.Register(0, socket.FD())
	})
	if err != nil {
		r.t.Fatalf("%s: %v", ifname, err)
	}
	return socket
}

// sendNumbered sends frames with a number at the end, and says how many.
func sendNumbered(s *xdp.Socket, first, n int) int {
	descs := s.GetDescs(min(n, s.NumFreeTxSlots()))
	for i := range descs {
		frame := s.GetFrame(descs[i])[:64]
		copy(frame, macB)
		copy(frame[6:], macA)
		binary.BigEndian.PutUint16(frame[12:], 0x88b5) // local experimental EtherType
		binary.BigEndian.PutUint32(frame[60:], uint32(first+i))
		descs[i].Len = 64
	}
	return s.Transmit(descs)
}
