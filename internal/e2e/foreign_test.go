// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/xskfwd/xskfwd/internal/bench"
	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// A program of somebody else is named and left alone, unless the daemon is told
// to replace it.
func TestIntegrationForeignProgramIsReplacedOnlyIfAsked(t *testing.T) {
	r := newRig(t, netlab.VethOptions{})
	r.attachForeign("r1")
	// Asked to keep the program at exit or not, a start that fails leaves none:
	// half a wire would take what r0 receives and bring nothing back.
	ports := []string{"-p", "r0", "-p", "r1", "--wire", "r0=r1", "--on-exit", "keep"}
	r.launch(ports...)
	if err := r.daemon.Wait(labtest.Context(t)); err == nil {
		t.Error("the daemon ended with 0")
	}
	r.says("r1", "theirs", "native", "--replace")
	if l, err := r.router.Link("r1"); err != nil || !l.Xdp.Attached {
		t.Errorf("the foreign program is gone (%v)", err)
	}
	if l, err := r.router.Link("r0"); err != nil || l.Xdp.Attached || l.Promisc != 0 {
		t.Errorf("r0: program left, or promiscuous (%v)", err)
	}
	r.start("--replace")
	for _, f := range []*flow{r.forth(bench.StreamConfig{}), r.back(bench.StreamConfig{})} {
		f.send(100)
		f.arrive()
		f.complete()
	}
	r.stop()
	r.nothingAttached()
}

// attachForeign puts a program that passes everything on a port of the router.
func (r *rig) attachForeign(ifname string) {
	r.t.Helper()
	dev, err := r.router.Link(ifname)
	if err != nil {
		r.t.Fatal(err)
	}
	const pass = 2 // XDP_PASS
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "theirs", Type: ebpf.XDP, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, pass), asm.Return()},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { program.Close() })
	var attached link.Link
	err = r.router.Do(func() (err error) {
		attached, err = link.AttachXDP(link.XDPOptions{Program: program, Interface: dev.Index, Flags: link.XDPDriverMode})
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { attached.Close() })
}
