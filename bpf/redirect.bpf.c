// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)

//go:build ignore

/*
 * The XDP program of a port. A frame goes to the AF_XDP socket of its receive
 * queue; where there is none, to the partner port; where there is none of that
 * either, to the kernel.
 *
 * Both steps use one property of bpf_redirect_map: a slot that holds nothing,
 * or lies outside of the map, gives back the action in its flags. The kernel
 * empties a slot by itself when the socket is closed (so also when its owner
 * is killed) and when the partner device disappears, so no state of ours can
 * be out of date. A slot whose socket refuses the frame (rx ring full, fill
 * ring empty, another queue's socket) is past saving here: the frame is lost
 * after the program has ended, and is counted by the socket (XDP_STATISTICS).
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct counters {
	__u64 redirected; /* to the socket of the queue */
	__u64 partner;    /* to the partner port: fail-to-wire */
	__u64 passed;     /* to the kernel */
	__u64 orphaned;   /* registered queue without a socket; also counted above */
};

/*
 * The sizes of the two queue maps are set by the loader: one slot for each
 * receive queue of the device.
 *
 * qidconf_map says which queues were registered. It is a hash because an array
 * cannot delete, and it is read off the fast path only: xsks_map alone decides.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} qidconf_map SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} xsks_map SEC(".maps");

/* The configuration of the port: slot 0 is the partner, empty when there is none. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} partner_map SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
} counters_map SEC(".maps");

SEC("xdp")
int xskfwd_redirect(struct xdp_md *ctx)
{
	__u32 queue = ctx->rx_queue_index;
	__u32 zero = 0;
	struct counters *count = bpf_map_lookup_elem(&counters_map, &zero);

	if (!count) /* cannot be; the verifier wants to hear it */
		return XDP_PASS;

	if (bpf_redirect_map(&xsks_map, queue, XDP_PASS) == XDP_REDIRECT) {
		count->redirected++;
		return XDP_REDIRECT;
	}

	if (bpf_map_lookup_elem(&qidconf_map, &queue))
		count->orphaned++;

	if (bpf_redirect_map(&partner_map, 0, XDP_PASS) == XDP_REDIRECT) {
		count->partner++;
		return XDP_REDIRECT;
	}
	count->passed++;
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
