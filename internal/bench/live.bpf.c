// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)

//go:build ignore

/*
 * Both ends of a rate measurement. "generate" is run by BPF_PROG_RUN in
 * live-frames mode: the kernel hands it the same few pages over and over, it
 * makes a UDP frame of each and sends it out of the port it is run for. "sink"
 * and "sink_skb" count and drop those frames, at the XDP hook for frames that
 * arrive by redirection and at tcx for frames that arrive as sk_buffs.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h> /* the TC_ACT values tcx takes too */
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define HEADER_BYTES (sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr))
#define SIZES 12 /* the longest repeating pattern of sizes, IMIX */
#define TICKS_PER_NS 256

/* Behind this far, the generator goes on from now instead of catching up in a burst. */
#define MAX_LATE_TICKS (1000000ULL * TICKS_PER_NS)

/* Written before the programs are loaded. */
const volatile __u8 header[HEADER_BYTES] __attribute__((aligned(2))); /* lengths and IP checksum 0 */
const volatile __u16 sizes[SIZES];        /* of frames to be sent, in turn */
const volatile __u32 header_sum;          /* of the IP header, not folded */
const volatile __u32 flows;               /* source ports, in turn */
const volatile __u64 interval_ticks;      /* between two frames; 0: none */
const volatile __u64 limit;               /* frames in all; 0: no limit */
const volatile __u16 port;                /* destination, in network order */

/* One thread runs the generator, so plain counters do. */
__u64 sent;
__u64 next_ticks;
__u32 flow;
__u32 turn;

struct sink_count {
	__u64 packets, bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sink_count);
} sink_counts SEC(".maps");

static __always_inline int is_due(void)
{
	__u64 now;

	if (limit && sent >= limit)
		return 0;
	if (!interval_ticks)
		return 1;
	now = bpf_ktime_get_ns() * TICKS_PER_NS;
	if (now < next_ticks)
		return 0;
	if (now - next_ticks > MAX_LATE_TICKS)
		next_ticks = now;
	next_ticks += interval_ticks;
	return 1;
}

static __always_inline __u32 next_size(void)
{
	__u32 i = turn;

	turn = i + 1 < SIZES ? i + 1 : 0;
	return i < SIZES ? sizes[i] : sizes[0];
}

static __always_inline __u16 next_port_offset(void)
{
	__u32 f = flow;

	flow = f + 1 < flows ? f + 1 : 0;
	return f;
}

static __always_inline __u16 folded(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

/* A page that is not sent goes back and comes again: dropping is waiting. */
SEC("xdp")
int generate(struct xdp_md *ctx)
{
	__u32 size, length = ctx->data_end - ctx->data;
	__u16 *words;
	struct iphdr *ip;
	struct udphdr *udp;

	if (!is_due())
		return XDP_DROP;
	size = next_size();
	if (size != length && bpf_xdp_adjust_tail(ctx, (int)size - (int)length))
		return XDP_ABORTED;
	words = (void *)(long)ctx->data;
	if ((void *)words + HEADER_BYTES > (void *)(long)ctx->data_end)
		return XDP_ABORTED;

	/* The page has been through the forwarder: write the whole header again. */
#pragma unroll
	for (unsigned int i = 0; i < HEADER_BYTES / 2; i++)
		words[i] = ((const volatile __u16 *)header)[i];
	ip = (void *)words + sizeof(struct ethhdr);
	udp = (void *)(ip + 1);
	ip->tot_len = bpf_htons(size - sizeof(struct ethhdr));
	ip->check = bpf_htons(folded(header_sum + size - sizeof(struct ethhdr)));
	udp->len = bpf_htons(size - sizeof(struct ethhdr) - sizeof(*ip));
	udp->source = bpf_htons(bpf_ntohs(udp->source) + next_port_offset());
	sent++;
	return XDP_TX;
}

/* Counts a frame if it is the generator's. */
static __always_inline int counted(void *data, void *end, __u32 length)
{
	struct ethhdr *eth = data;
	struct iphdr *ip = (void *)(eth + 1);
	struct udphdr *udp = (void *)(ip + 1);
	struct sink_count *count;
	__u32 zero = 0;

	if ((void *)(udp + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP) ||
	    ip->protocol != IPPROTO_UDP || udp->dest != port)
		return 0;
	count = bpf_map_lookup_elem(&sink_counts, &zero);
	if (!count)
		return 0;
	count->packets++;
	count->bytes += length;
	return 1;
}

SEC("xdp")
int sink(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	return counted(data, end, end - data) ? XDP_DROP : XDP_PASS;
}

SEC("tcx/ingress")
int sink_skb(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;

	return counted(data, end, skb->len) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "Dual BSD/GPL";
