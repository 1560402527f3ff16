// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/xskfwd/xskfwd/bulk"
	"github.com/xskfwd/xskfwd/napi"
)

// Fakes that discard allocate nothing, so what is counted is the forwarder's.
func TestPollAllocatesNothing(t *testing.T) {
	clock := napi.Monotonic()
	batch := frames(Weight)
	odd := append(frames(40), frame(0, 0, 3), frame(0, 0, largest+1), frame(0, 0, 0))
	for _, workers := range []int{1, 2} {
		for _, size := range []int{1, 16} {
			for _, rule := range []bulk.Rule{bulk.Partition, bulk.Change} {
				r := benchRig(t, rigConfig{workers: workers, bulkSize: size, rule: rule})
				in, out := r.all[0], r.all[1]
				for what, run := range map[string]func(){
					"full batches":  func() { turn(in, out, batch, clock) },
					"with drops":    func() { turn(in, out, odd, clock) },
					"both ways":     func() { turn(in, out, batch, clock); turn(out, in, odd, clock) },
					"empty polls":   func() { in.q.Poll(Weight) },
					"bad addresses": func() { out.k.CompleteAddr(1 << 40); out.q.Poll(Weight) },
					"no link": func() {
						out.k.SetNeedWakeup(false, true)
						out.k.SetLink(false)
						turn(in, out, batch, clock)
						turn(in, out, batch, clock)
						out.k.SetLink(true)
						turn(in, out, batch, clock)
					},
					"publish": func() { r.workers[0].publish() },
				} {
					run() // slices of the fake grow once
					if n := testing.AllocsPerRun(100, run); n != 0 {
						t.Errorf("%s, %d workers, bulk %d, %s: %v allocations", what, workers, size, ruleName(rule), n)
					}
				}
			}
		}
	}
}

func TestCutIntoOldMemoryAllocatesNothing(t *testing.T) {
	r := benchRig(t, rigConfig{queues: []int{2, 2}})
	w := r.workers[0]
	w.publish()
	var c WorkerCut
	w.Cut(&c)
	if n := testing.AllocsPerRun(100, func() { w.Cut(&c) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The compiler says itself what it moves to the heap. The package's own code on
// the packet path must not be in that list.
func TestNothingOfAPollEscapes(t *testing.T) {
	out, err := exec.Command("go", "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "queue.go") {
		t.Fatalf("no diagnostics of queue.go:\n%s", out)
	}
	for line := range strings.Lines(string(out)) {
		moved := strings.Contains(line, "moved to heap") || strings.Contains(line, "escapes to heap")
		if !moved {
			continue
		}
		for _, file := range []string{"clean.go", "refill.go", "receive.go", "forward.go", "transmit.go"} {
			if strings.Contains(line, file+":") {
				t.Errorf("on the packet path: %s", line)
			}
		}
		if strings.Contains(line, "moved to heap: done") {
			t.Errorf("the FrameBulk of a poll: %s", line)
		}
	}
}

func TestDropReasonsAreNamedApart(t *testing.T) {
	seen := map[string]bool{}
	for why := range DropReasons {
		name := why.String()
		if name == "unknown" || seen[name] {
			t.Errorf("reason %d: name %q", why, name)
		}
		seen[name] = true
	}
	expect(t, "the name of no reason", DropReasons.String(), "unknown")
	expect(t, "the reason of a verdict nobody gave", fmt.Sprint(DropReason(0)), "unset")
}
