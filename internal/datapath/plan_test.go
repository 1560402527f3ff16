// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func TestMakePlanSpreadsQueues(t *testing.T) {
	for _, c := range []struct {
		name    string
		queues  []int
		workers int
		want    Plan
	}{
		{"one-worker", []int{1, 1}, 1, Plan{
			Owner: [][]int{{0}, {0}}, TxQueue: [][]int{{0}, {0}}, Shared: [][]bool{{false}, {false}},
		}},
		{"a-queue-for-each-worker", []int{2, 2}, 2, Plan{
			Owner: [][]int{{0, 1}, {0, 1}}, TxQueue: [][]int{{0, 1}, {0, 1}}, Shared: [][]bool{{false, false}, {false, false}},
		}},
		{"more-queues-than-workers", []int{4, 2}, 2, Plan{
			Owner: [][]int{{0, 1, 0, 1}, {0, 1}}, TxQueue: [][]int{{0, 1}, {0, 1}}, Shared: [][]bool{{false, false, false, false}, {false, false}},
		}},
		{"a-worker-for-each-end", []int{1, 1}, 2, Plan{
			Owner: [][]int{{0}, {1}}, TxQueue: [][]int{{0, 0}, {0, 0}}, Shared: [][]bool{{true}, {true}},
		}},
		{"one-end-has-fewer", []int{2, 1}, 2, Plan{
			Owner: [][]int{{0, 1}, {0}}, TxQueue: [][]int{{0, 1}, {0, 0}}, Shared: [][]bool{{false, false}, {true}},
		}},
		{"two-wires-stay-whole", []int{1, 1, 1, 1}, 2, Plan{
			Owner: [][]int{{0}, {0}, {1}, {1}}, TxQueue: [][]int{{0, 0}, {0, 0}, {0, 0}, {0, 0}},
			Shared: [][]bool{{false}, {false}, {false}, {false}},
		}},
		{"three-workers-two-and-one", []int{2, 1}, 3, Plan{
			Owner: [][]int{{0, 1}, {2}}, TxQueue: [][]int{{0, 1, 0}, {0, 0, 0}}, Shared: [][]bool{{true, false}, {true}},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := MakePlan(portsOf(c.queues), pairs(len(c.queues)), c.workers)
			if err != nil {
				t.Fatal(err)
			}
			c.want.Workers = c.workers
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("plan:\n got %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func portsOf(queues []int) (ports []PortQueues) {
	for i, n := range queues {
		ports = append(ports, portOf(fmt.Sprintf("p%d", i), n))
	}
	return ports
}

func TestMakePlanRefusesWhatCannotBe(t *testing.T) {
	for _, c := range []struct {
		queues  []int
		workers int
		mention string
	}{
		{[]int{1, 1}, 0, "1 to 2"}, {[]int{1, 1}, 3, "1 to 2"}, {[]int{1, 1}, -1, "1 to 2"}, {[]int{1, 0}, 1, "port p1"},
	} {
		_, err := MakePlan(portsOf(c.queues), pairs(2), c.workers)
		if err == nil || !strings.Contains(err.Error(), c.mention) {
			t.Errorf("%v queues, %d workers: got %v, want a mention of %q", c.queues, c.workers, err, c.mention)
		}
	}
}

func TestMakePlanHoldsItsPromises(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		queues := make([]int, 2*(1+rnd.IntN(3)))
		total := 0
		for i := range queues {
			queues[i] = 1 + rnd.IntN(6)
			total += queues[i]
		}
		workers := 1 + rnd.IntN(total)
		wires := pairs(len(queues))
		p, err := MakePlan(portsOf(queues), wires, workers)
		if err != nil {
			t.Fatal(err)
		}
		if broken := promise(p, queues, wires); broken != "" {
			t.Fatalf("%v queues, %d workers: %s: %+v", queues, workers, broken, p)
		}
	}
}

// promise is the promise a plan breaks, if any.
func promise(p Plan, queues []int, wires [][2]int) string {
	seen := map[int]bool{}
	for port, owners := range p.Owner {
		if len(owners) != queues[port] || len(p.Shared[port]) != queues[port] || len(p.TxQueue[port]) != p.Workers {
			return "a queue without an owner, or an owner without a queue"
		}
		for _, w := range owners {
			if w < 0 || w >= p.Workers {
				return "an owner that is no worker"
			}
			seen[w] = true
		}
		if broken := txPromise(p, port, queues[port]); broken != "" {
			return broken
		}
	}
	if len(seen) != p.Workers {
		return "a worker without a queue"
	}
	return sharedPromise(p, wires)
}

func txPromise(p Plan, port, queues int) string {
	for w, q := range p.TxQueue[port] {
		if q < 0 || q >= queues {
			return "a TX queue that is not there"
		}
		for _, o := range p.Owner[port] {
			if o == w && p.Owner[port][q] != w {
				return "a worker that has a queue transmits on another's"
			}
		}
		if queues >= p.Workers && q != w {
			return "a queue for each worker, but worker w does not transmit on queue w"
		}
	}
	return ""
}

// sharedPromise compares Shared with what is found by asking of every queue
// which workers send to it.
func sharedPromise(p Plan, wires [][2]int) string {
	partner := map[int]int{}
	for _, w := range wires {
		partner[w[0]], partner[w[1]] = w[1], w[0]
	}
	for port, shared := range p.Shared {
		for q := range shared {
			foreign := false
			for _, w := range p.Owner[partner[port]] {
				foreign = foreign || p.TxQueue[port][w] == q && p.Owner[port][q] != w
			}
			if foreign != shared[q] {
				return fmt.Sprintf("port %d queue %d: shared %t, foreign transmitter %t", port, q, shared[q], foreign)
			}
		}
	}
	return ""
}
