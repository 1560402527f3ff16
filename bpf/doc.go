// SPDX-License-Identifier: Apache-2.0

// Package bpf puts the redirect program on a port and tells it where frames go.
//
// The program (redirect.bpf.c) hands each frame to the AF_XDP socket of its
// receive queue. Where the queue has no socket, the frame goes to the partner
// port without leaving the kernel; where there is no partner, to the kernel's
// own network stack. The kernel clears the slot of a socket that is closed, so
// a daemon that dies turns the wire into one of the kernel's by itself
// (fail-to-wire), for as long as the program stays attached: until the process
// ends, or, when link and maps are pinned in a bpffs, until [Port.Detach] or
// [DetachAll].
//
// # Order
//
// Start: [Load], sockets bound and their fill rings posted, [Port.Register] for
// each queue, [Port.Attach]. From the first redirected frame on, a socket is
// there to take it.
//
// Stop: [Port.Detach] (nothing stays) or [Port.Close] (a pinned program goes
// on, as fail-to-wire), and only then close the sockets; closing sockets under
// an attached program has crashed kernels. To hand over queue by queue, call
// [Port.Unregister] first.
//
// Detach both ports of a wire, or none: most drivers drop what is redirected to
// a port on which no program runs. A native program cannot redirect to a device
// without native XDP at all; mode auto heeds that where the kernel tells (6.3).
// A veth end takes redirected frames only while its peer runs NAPI (GRO is on,
// or a native program attached): ask [Port.FailToWireWarning] once both are
// attached.
//
// A Port acts in the network namespace of the calling thread, which must be the
// one the interface is in. Its methods are for one goroutine, except Counters.
//
// # What is counted where
//
// [Counters] has the program's verdicts. A frame whose verdict was "to the
// socket" may still be lost, because the socket refused it: its rx ring was
// full, its fill ring empty, the frame longer than a chunk. The program cannot
// see that; the socket's XDP_STATISTICS count it. A frame redirected to a
// partner that is down, or cannot send, is dropped by the kernel and counted by
// the partner's driver at best.
//
// # Pins
//
// With Options.PinDir set, the link and the maps are pinned in
// PinDir/VERSION, VERSION being a hash of the object and the number of queues.
// The next Load with the same PinDir adopts them when the version is its own:
// the program stays attached throughout and its counters go on. Pins of another
// version are replaced, by an update of the link in place where the kernel
// allows it. An flock on PinDir keeps a second process off; it ends with the
// process, so a killed one leaves no lock. Where the directory cannot be made or
// written, Load fails with [ErrNoPins]: without PinDir the daemon can run, but
// fail-to-wire ends with it.
//
// Pins go by the name of the interface. Those of one that was renamed since are
// found among the other ports', unless a process holds them, and moved. Every
// Load also removes what is left there of devices and namespaces that are gone.
package bpf

//go:generate go tool bpf2go -cc clang-14 -target bpfel redirect redirect.bpf.c -- -Wall -Wextra -Werror -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu
