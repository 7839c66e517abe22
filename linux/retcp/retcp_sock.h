/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The hooks of a congestion control, between struct tcp_sock and retcp.h. The module and the BPF program include this
 * file after their own definitions of:
 *   retcp_alpha(), retcp_beta()           the parameters, in percent
 *   retcp_store_cwnd(tp, packets)         sets the window
 *   RETCP_HOOK(type, name, arguments...)  begins a function that the stack calls
 */

/* reTCP sees marks only on connections with ECN as in RFC 3168. */
#define RETCP_ECN_CLASSIC 1		/* bit of tp->ecn_flags: ECN was negotiated */
#define RETCP_ECN_CWR_DUE 2		/* the next packet carries CWR: the window was reduced */

/* Flag of in_ack_event(): ECN-Echo was set. */
#define RETCP_ACK_ECE 4

static inline struct retcp_view retcp_look(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return (struct retcp_view){
		.cwnd = tp->snd_cwnd,
		.ssthresh = tp->snd_ssthresh,
		.clamp = tp->snd_cwnd_clamp,
		.in_flight = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out,
		.una = tp->snd_una,
		.next = tp->snd_nxt,
		.high = tp->high_seq,
		.lost = tp->lost,
		.sent = tp->data_segs_out,
		.copies = tp->total_retrans,
		.copies_out = tp->retrans_out,
		.needless = tp->dsack_dups,
		.reordering = tp->reordering,
		.used = tp->max_packets_out,
		.phase = inet_csk(sk)->icsk_ca_state,
		.limited = tp->is_cwnd_limited,
	};
}

static inline void retcp_store(struct sock *sk, const struct retcp *r)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (r->cwnd != tp->snd_cwnd)
		retcp_store_cwnd(tp, r->cwnd);
	if (r->ssthresh != tp->snd_ssthresh)
		tp->snd_ssthresh = r->ssthresh;
}

/* A controller with cong_control sets the pacing rate itself. */
static inline void retcp_pace(struct sock *sk, const struct retcp *r)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	unsigned long rate;

	if (!tp->srtt_us)
		return;
	rate = retcp_pacing(r, tp->packets_out, tp->mss_cache, tp->srtt_us, retcp_pacing_ss(sk), retcp_pacing_ca(sk));
	if (rate > sk->sk_max_pacing_rate)
		rate = sk->sk_max_pacing_rate;
	sk->sk_pacing_rate = rate;
}

RETCP_HOOK(void, retcp_hook_init, struct sock *sk)
{
	struct retcp_view v = retcp_look(sk);
	struct retcp *r = inet_csk_ca(sk);

	retcp_start(r, &v);
	retcp_pace(sk, r);
	if (!(tcp_sk(sk)->ecn_flags & RETCP_ECN_CLASSIC))
		retcp_no_ecn();
}

RETCP_HOOK(void, retcp_hook_in_ack_event, struct sock *sk, __u32 flags)
{
	struct retcp_view v = retcp_look(sk);
	struct retcp *r = inet_csk_ca(sk);

	retcp_on_ack(r, &v, !!(flags & RETCP_ACK_ECE), retcp_alpha(), retcp_beta());
	retcp_store(sk, r);
}

RETCP_HOOK(void, retcp_hook_cong_control, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
	struct retcp_view v = retcp_look(sk);
	struct retcp *r = inet_csk_ca(sk);

	retcp_after_ack(r, &v, rs->acked_sacked, rs->losses);
	retcp_store(sk, r);
	retcp_pace(sk, r);
}

RETCP_HOOK(__u32, retcp_hook_ssthresh, struct sock *sk)
{
	struct retcp_view v = retcp_look(sk);
	struct retcp *r = inet_csk_ca(sk);

	retcp_on_threshold(r, &v);
	return r->ssthresh;
}

RETCP_HOOK(void, retcp_hook_set_state, struct sock *sk, __u8 to)
{
	struct retcp_view v = retcp_look(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct retcp *r = inet_csk_ca(sk);

	retcp_on_phase(r, &v, to);
	retcp_store(sk, r);
	/* The bit CWR means that the sender has reduced its window (RFC 3168, section 6.1.2): after a mark it has not. */
	if (to == RETCP_CWR && !r->reducing)
		tp->ecn_flags &= ~RETCP_ECN_CWR_DUE;
}

RETCP_HOOK(__u32, retcp_hook_undo_cwnd, struct sock *sk)
{
	struct retcp_view v = retcp_look(sk);
	struct retcp *r = inet_csk_ca(sk);

	retcp_take(r, &v);
	retcp_undo(r, &v);
	retcp_store(sk, r);
	return r->cwnd;
}
