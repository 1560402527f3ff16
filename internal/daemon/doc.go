// SPDX-License-Identifier: Apache-2.0

// Package daemon wires the forwarder together: what is opened in which order,
// what is watched while it runs, and in which order it is taken down.
//
// Start: ports resolved, memory mapped, sockets bound, fill rings posted,
// workers started, XSKMAP filled, program attached, READY. Stop: program
// detached (or left to join the wire in the kernel), RX and TX drained, workers
// stopped, census taken, sockets closed, memory unmapped.
package daemon
