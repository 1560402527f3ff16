// SPDX-License-Identifier: Apache-2.0

// Package bench has the generators and meters of xskfwd.
//
// For exact accounting there are a Sender of numbered frames and a Recorder,
// over AF_PACKET: what is missing, doubled, out of order within its flow or
// has a wrong byte is known by number. For rates there are a Source, which
// lets the kernel make frames (BPF_PROG_RUN in live-frames mode), and a Sink,
// which counts and drops them in the kernel. Comparison lets forwarders
// compete on a Lane: generator, forwarder and sink, a namespace each.
package bench

//go:generate go tool bpf2go -cc clang-14 -target bpfel live live.bpf.c -- -Wall -Wextra -Werror -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu
