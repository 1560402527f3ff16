// SPDX-License-Identifier: Apache-2.0

package datapath

import "fmt"

// PortQueues is what MakePlan needs to know of a port.
type PortQueues struct {
	Name   string
	Queues []int // device queue numbers, ascending
}

// Plan says which worker serves which queue and which TX queue each worker
// uses on each port. Queues are named by their index in PortQueues.Queues.
type Plan struct {
	Workers int
	Owner   [][]int  // [port][queue index]: the worker whose Napi polls it
	TxQueue [][]int  // [port][worker]: index of the queue the worker transmits on
	Shared  [][]bool // [port][queue index]: written by a worker other than its owner
}

// MakePlan spreads the queues of the ports over the workers. Wires are pairs of
// port indices; frames received on one end leave through the other.
//
// A port with at least as many queues as there are workers gives queue i to
// worker i mod workers, and worker w transmits on queue w: nothing is shared.
// A port with fewer queues cannot: its TX queues are shared. Both ends of a
// wire are kept on one worker while that leaves no worker without a queue,
// because then every page returns to a pool of the worker that took it.
func MakePlan(ports []PortQueues, wires [][2]int, workers int) (Plan, error) {
	queues := 0
	for _, p := range ports {
		if len(p.Queues) == 0 {
			return Plan{}, fmt.Errorf("port %s: no queue to serve", p.Name)
		}
		queues += len(p.Queues)
	}
	if workers < 1 || workers > queues {
		return Plan{}, fmt.Errorf("%d workers for %d queues: allowed is 1 to %d, one queue per worker at least", workers, queues, queues)
	}
	p := Plan{Workers: workers, Owner: ownersByWire(ports, wires, workers)}
	if used(p.Owner) < workers {
		p.Owner = ownersByPort(ports, workers)
	}
	p.TxQueue = txQueues(p.Owner, workers)
	p.Shared = sharedQueues(p, wires)
	return p, nil
}

// ownersByWire gives both ends of a wire the same offset.
func ownersByWire(ports []PortQueues, wires [][2]int, workers int) [][]int {
	owner := make([][]int, len(ports))
	offset := 0
	for _, w := range wires {
		widest := max(len(ports[w[0]].Queues), len(ports[w[1]].Queues))
		for _, end := range w {
			owner[end] = spread(len(ports[end].Queues), offset, workers)
		}
		offset += widest
	}
	for i := range owner {
		if owner[i] == nil {
			owner[i] = spread(len(ports[i].Queues), offset, workers)
			offset += len(ports[i].Queues)
		}
	}
	return owner
}

// ownersByPort gives each port its own offset, so that as many workers as
// there are queues get one.
func ownersByPort(ports []PortQueues, workers int) [][]int {
	owner := make([][]int, len(ports))
	offset := 0
	for i, p := range ports {
		owner[i] = spread(len(p.Queues), offset, workers)
		offset += len(p.Queues)
	}
	return owner
}

// spread deals n queues to the workers, from offset on; a port that has a
// queue for every worker starts at worker 0, so that worker w owns queue w.
func spread(n, offset, workers int) []int {
	if n >= workers {
		offset = 0
	}
	owner := make([]int, n)
	for i := range owner {
		owner[i] = (offset + i) % workers
	}
	return owner
}

// used counts the workers that own a queue.
func used(owner [][]int) int {
	seen := map[int]bool{}
	for _, queues := range owner {
		for _, w := range queues {
			seen[w] = true
		}
	}
	return len(seen)
}

// txQueues picks for each port and worker the queue of its own if there is
// one, else queue w mod queues.
func txQueues(owner [][]int, workers int) [][]int {
	tx := make([][]int, len(owner))
	for port, queues := range owner {
		tx[port] = make([]int, workers)
		for w := range workers {
			tx[port][w] = w % len(queues)
			for i, o := range queues {
				if o == w {
					tx[port][w] = i
					break
				}
			}
		}
	}
	return tx
}

// sharedQueues marks the TX queues on which a worker transmits that does not
// own them. Only workers that receive on the other end of the wire transmit.
func sharedQueues(p Plan, wires [][2]int) [][]bool {
	shared := make([][]bool, len(p.Owner))
	for port := range p.Owner {
		shared[port] = make([]bool, len(p.Owner[port]))
	}
	mark := func(from, to int) {
		for _, w := range p.Owner[from] {
			q := p.TxQueue[to][w]
			if p.Owner[to][q] != w {
				shared[to][q] = true
			}
		}
	}
	for _, w := range wires {
		mark(w[0], w[1])
		mark(w[1], w[0])
	}
	return shared
}
