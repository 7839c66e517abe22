// SPDX-License-Identifier: GPL-2.0
/*
 * Replaces the fabric in the test of reTCP, on a pair of virtual Ethernet devices (tc, direct action): it sets ECN-Echo
 * on every packet while the test says so, as a switch does while a circuit is up, and drops chosen packets.
 */
#include "vmlinux.h"

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define PASS 0
#define DROP 2
#define ETHERNET 14
#define TCP_WORD 12 /* offset of the header length and the flags */
#define SYN 0x02
#define ECE 0x40

char _license[] SEC("license") = "GPL";

struct control {
	__u64 mark;	/* set ECN-Echo */
	__u64 drop;	/* bit 0: drop the next counted packet; bit 1: the one after it; ... */
	__u64 seen;	/* counted packets since the start */
	__u64 cwr;	/* packets with the bit CWR */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct control);
} control SEC(".maps");

static inline struct control *controls(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&control, &key);
}

/* Offset of the TCP header of an IPv4 packet without SYN, else 0; length of its payload; its flags. */
static inline __u32 tcp_header(struct __sk_buff *packet, __u32 *payload, __u16 *word)
{
	__u8 version, protocol;
	__u16 total;
	__u32 at;

	if (bpf_skb_load_bytes(packet, ETHERNET, &version, 1) || version >> 4 != 4 ||
	    bpf_skb_load_bytes(packet, ETHERNET + 9, &protocol, 1) || protocol != 6 ||
	    bpf_skb_load_bytes(packet, ETHERNET + 2, &total, 2))
		return 0;
	at = ETHERNET + (version & 15) * 4;
	if (bpf_skb_load_bytes(packet, at + TCP_WORD, word, 2) || bpf_ntohs(*word) & SYN)
		return 0;
	*payload = bpf_ntohs(total) - (version & 15) * 4 - (bpf_ntohs(*word) >> 12) * 4;
	return at;
}

static inline int drops(struct control *c)
{
	int drop = c->drop & 1;

	c->drop >>= 1;
	c->seen++;
	return drop ? DROP : PASS;
}

/* For ACKs: on the sender's device, inbound. */
SEC("tc")
int acks(struct __sk_buff *packet)
{
	struct control *c = controls();
	__u16 word, marked;
	__u32 payload, at = tcp_header(packet, &payload, &word);

	if (!at || !c)
		return PASS;
	if (c->mark && !(word & bpf_htons(ECE))) {
		marked = word | bpf_htons(ECE);
		bpf_l4_csum_replace(packet, at + 16, word, marked, 2);
		bpf_skb_store_bytes(packet, at + TCP_WORD, &marked, 2, 0);
	}
	return drops(c);
}

/* For data: on the receiver's device, inbound. */
SEC("tc")
int data(struct __sk_buff *packet)
{
	struct control *c = controls();
	__u16 word;
	__u32 payload, at = tcp_header(packet, &payload, &word);

	if (!at || !c || !payload)
		return PASS;
	c->cwr += !!(word & bpf_htons(0x80));
	return drops(c);
}
