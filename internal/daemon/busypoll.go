// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"github.com/xskfwd/xskfwd/internal/datapath"
	"github.com/xskfwd/xskfwd/internal/xsk"
)

// busyPollUsecs is SO_BUSY_POLL: how long one system call may poll the device
// when nothing is there. Zero would turn it off; the worker comes back at once
// anyway, so longer would only keep it from its other queues.
const busyPollUsecs = 1

// preferBusyPoll asks for preferred busy polling on all sockets of a worker: the
// device's NAPI runs when the worker says so, on the worker's CPU, and raises no
// interrupts meanwhile. It reports whether every socket has it; if not, none
// keeps it. A kernel before 5.11 has no such thing; then the worker polls its
// rings only.
func (p *plane) preferBusyPoll(worker int) bool {
	for _, u := range p.units {
		if u.worker != worker {
			continue
		}
		got, err := u.sock.SetBusyPoll(xsk.BusyPoll{Prefer: true, Usecs: busyPollUsecs, Budget: datapath.Weight})
		if err != nil || !got.Prefer {
			p.log.Info("no busy polling of the device: the worker polls its rings only", "port", u.port.name, "queue", u.number, "why", err)
			p.endBusyPoll(worker)
			return false
		}
	}
	return true
}

// endBusyPoll gives the devices of a worker their interrupts back.
func (p *plane) endBusyPoll(worker int) {
	for _, u := range p.units {
		if u.worker == worker {
			_, _ = u.sock.SetBusyPoll(xsk.BusyPoll{}) // a kernel without it has nothing to switch off
		}
	}
}
