/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Timestamps of the network interfaces in TCP: the option of DX (Lee et al., "Accurate Latency-based Congestion
 * Feedback for Datacenters", USENIX ATC 2015, sections 2 and 4).
 *
 * A congestion control with the flag TCP_CONG_STAMPS has the option on every packet of its connections, and a struct
 * firstlight_stamps at the beginning of its private memory. Two NOPs, a kind for experiments (RFC 4727) and a length
 * precede three timestamps, each in nanoseconds of a host's own clock, modulo 2^32:
 *
 * - when this packet left its sender's interface (t1; of an ACK t3), which the driver writes;
 * - when the packet that this one answers left its sender's interface (t1) and came to its receiver's (t2), which TCP
 *   echoes; both are zero where nothing is echoed.
 *
 * When a packet came (t2, t4) the driver tells as hardware does, by skb_hwtstamps(). TCP hands the measured delays to
 * the congestion control before its in_ack_event().
 */
#ifndef FIRSTLIGHT_STAMPS_H
#define FIRSTLIGHT_STAMPS_H

#include <linux/unaligned.h>
#include <net/tcp.h>

#define TCP_CONG_STAMPS BIT(31)
#define OPTION_STAMPS BIT(15)
#define TCPOPT_STAMPS 253
#define TCPOLEN_STAMPS 14
#define TCPOLEN_STAMPS_ALIGNED 16

/* An ACK that was kept for longer is no measure: the clocks drift apart meanwhile. */
#define FIRSTLIGHT_LONGEST_KEPT ((u32)NSEC_PER_MSEC)

struct firstlight_stamps {
	/* The newest full-sized packet that has come: t1 and t2. */
	u32 sent, received;
	/* The last packet of ours of which the peer has told. */
	u32 told_sent, told_received;
	/* What the packet that TCP works on tells, in nanoseconds: skewed one-way delay, round trip. */
	s32 one_way;
	u32 rtt;
	/* No packet has told the peer of the newest full-sized one. */
	bool unanswered;
	/* The packet that TCP works on tells something. */
	bool measured;
};

/* NULL where the connection's packets carry no timestamps of the interfaces. */
static inline struct firstlight_stamps *firstlight_stamps_of(const struct sock *sk)
{
	return unlikely(inet_csk(sk)->icsk_ca_ops->flags & TCP_CONG_STAMPS) ? inet_csk_ca(sk) : NULL;
}

/* The option's three timestamps in a whole TCP header; NULL without it. */
static inline u8 *firstlight_find_stamps(struct tcphdr *tcp)
{
	u8 *at = (u8 *)(tcp + 1), *end = (u8 *)tcp + tcp->doff * 4;

	while (at + 1 < end && *at != TCPOPT_EOL) {
		if (*at == TCPOPT_NOP) {
			at++;
			continue;
		}
		if (at[1] < 2 || at + at[1] > end)
			break;
		if (at[0] == TCPOPT_STAMPS && at[1] == TCPOLEN_STAMPS)
			return at + 2;
		at += at[1];
	}
	return NULL;
}

/* Writes the option of a packet that TCP sends; tp is NULL for a SYN-ACK. */
static inline __be32 *firstlight_write_stamps(__be32 *to, const struct tcp_sock *tp)
{
	struct firstlight_stamps *stamps = tp ? firstlight_stamps_of((const struct sock *)tp) : NULL;
	bool echo = stamps && stamps->unanswered;

	*to++ = htonl(TCPOPT_NOP << 24 | TCPOPT_NOP << 16 | TCPOPT_STAMPS << 8 | TCPOLEN_STAMPS);
	*to++ = 0;
	*to++ = htonl(echo ? stamps->sent : 0);
	*to++ = htonl(echo ? stamps->received : 0);
	if (echo)
		stamps->unanswered = false;
	return to;
}

/*
 * Reads the option of a packet that TCP has accepted. Only full-sized packets are measured, because a short one takes
 * less time on every link. The segments of one burst carry the same echo, which counts once.
 */
static inline void firstlight_read_stamps(struct sock *sk, struct sk_buff *skb)
{
	struct firstlight_stamps *stamps = firstlight_stamps_of(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	struct tcphdr *tcp = tcp_hdr(skb);
	u32 sent, received, told_sent, told_received, kept, headers, payload;
	u8 *option;

	if (!stamps)
		return;
	stamps->measured = false;
	option = firstlight_find_stamps(tcp);
	if (!option)
		return;
	sent = get_unaligned_be32(option);
	told_sent = get_unaligned_be32(option + 4);
	told_received = get_unaligned_be32(option + 8);
	received = ktime_to_ns(skb_hwtstamps(skb)->hwtstamp);

	headers = tp->tcp_header_len - sizeof(*tcp) + TCPOLEN_STAMPS_ALIGNED;
	payload = TCP_SKB_CB(skb)->end_seq - TCP_SKB_CB(skb)->seq - tcp->syn - tcp->fin;
	if (payload && payload + headers >= min_t(u32, tp->advmss, tp->rx_opt.mss_clamp)) {
		stamps->sent = sent;
		stamps->received = received;
		stamps->unanswered = true;
	}

	if (!(told_sent | told_received) ||
	    (told_sent == stamps->told_sent && told_received == stamps->told_received))
		return;
	stamps->told_sent = told_sent;
	stamps->told_received = told_received;
	/* Timestamps are not exact: an ACK may seem to leave before its packet has come. */
	kept = sent - told_received;
	if (abs((s32)kept) > FIRSTLIGHT_LONGEST_KEPT)
		return;
	stamps->one_way = told_received - told_sent;
	stamps->rtt = max((s32)(received - told_sent - kept), 0);
	stamps->measured = true;
}

#endif
