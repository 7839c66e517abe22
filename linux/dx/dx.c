// SPDX-License-Identifier: GPL-2.0
/*
 * DX as a loadable congestion control, "dx": the window follows the queueing delay, measured one way and without
 * synchronized clocks (Lee, Park, Jang, Moon and Han, "Accurate Latency-based Congestion Feedback for Datacenters",
 * USENIX ATC 2015).
 *
 * Once per round trip, with Q the mean queueing delay of the round's samples (equation 1): cwnd + 1 if Q is below the
 * headroom, cwnd (1 - Q / V) if not, where V = R W / (W - 1) (equation 8), so that the window falls by (W - 1) Q / R.
 * What the paper leaves open is decided as on simulated hosts (crates/transport/src/cc/dx.rs says each choice).
 *
 * Samples come from firstlight_stamps.h.
 */
#include <linux/bug.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <net/firstlight_stamps.h>
#include <net/tcp.h>

/* Bits of the window's fraction. */
#define DX_FRACTION 32
/* The least window, in packets. */
#define DX_LEAST 2
/* Round-trip times this close are always the same: four timestamps of 1 ns, twice, and 80 ns of drift. */
#define DX_SAME_PS 84000u

static uint headroom = 1200000;
module_param(headroom, uint, 0444);
MODULE_PARM_DESC(headroom, "a mean queueing delay below this counts as none, in picoseconds (by default 1.2 us)");
static bool host_rtt;
module_param(host_rtt, bool, 0444);
MODULE_PARM_DESC(host_rtt, "R is the least round trip that TCP measures, not the interfaces'");
static bool excess;
module_param(excess, bool, 0444);
MODULE_PARM_DESC(excess, "Q is what exceeds the headroom");
static bool stop_at_sample;
module_param(stop_at_sample, bool, 0444);
MODULE_PARM_DESC(stop_at_sample, "slow start ends at the first packet above the headroom, not at its round's end");

struct dx {
	/* First: TCP fills it in. */
	struct firstlight_stamps stamps;
	/* The window with its fraction, as it was set last. */
	u64 exact;
	/* The samples of a round: the sum is of differences from the first, since they wrap. */
	s64 sum;
	s32 first;
	u32 count;
	/* The least round trip, and the skewed one-way delay of the last packet that had it. */
	u32 base_rtt;
	s32 base_one_way;
	/* The round ends when this sequence number is acknowledged. */
	u32 round_end;
	bool has_base;
	/* The samples of this round are of an earlier window. */
	bool stale;
	/* The window is to grow by a packet. */
	bool raise;
};

/* The window with its fraction; where TCP has moved its own since it was set, that. */
static u64 dx_window(struct dx *dx, const struct tcp_sock *tp)
{
	u32 cwnd = tcp_snd_cwnd(tp);

	if (dx->exact >> DX_FRACTION != cwnd)
		dx->exact = (u64)cwnd << DX_FRACTION;
	return dx->exact;
}

static void dx_set_window(struct dx *dx, struct tcp_sock *tp, u64 window)
{
	dx->exact = window;
	tcp_snd_cwnd_set(tp, min_t(u32, window >> DX_FRACTION, tp->snd_cwnd_clamp));
}

static void dx_measure(struct dx *dx)
{
	u32 rtt = dx->stamps.rtt, same = max(DX_SAME_PS, headroom / 2);
	s32 one_way = dx->stamps.one_way;

	if (!dx->has_base || (u64)rtt * 1000 <= (u64)dx->base_rtt * 1000 + same) {
		dx->base_rtt = dx->has_base ? min(rtt, dx->base_rtt) : rtt;
		dx->base_one_way = one_way;
		dx->has_base = true;
	}
	if (!dx->count)
		dx->first = one_way;
	dx->sum += (s32)((u32)one_way - (u32)dx->first);
	dx->count++;
}

/* The queueing delay of a one-way delay, in nanoseconds. */
static s64 dx_queueing(const struct dx *dx, s32 one_way)
{
	return (s32)((u32)one_way - (u32)dx->base_one_way);
}

/* R of equation 8, in nanoseconds. */
static u64 dx_round_trip(const struct dx *dx, const struct tcp_sock *tp)
{
	u32 least = tcp_min_rtt(tp);

	return host_rtt && least != ~0U ? (u64)least * NSEC_PER_USEC : dx->base_rtt;
}

static void dx_end_round(struct dx *dx, struct tcp_sock *tp)
{
	/* All of the round's samples together, in picoseconds. */
	s64 allowed = (s64)headroom * dx->count;
	s64 queueing = (dx->sum + dx_queueing(dx, dx->first) * dx->count) * 1000;
	u64 round_trips = dx_round_trip(dx, tp) * 1000 * dx->count;
	u64 window, least, drained;
	bool useless = dx->stale || !dx->has_base || !dx->count;

	dx->stale = false;
	dx->raise = false;
	dx->sum = 0;
	dx->count = 0;
	if (useless)
		return;
	if (queueing < allowed) {
		dx->raise = true;
		return;
	}
	drained = excess ? queueing - allowed : queueing;
	window = dx_window(dx, tp);
	least = min_t(u64, (u64)DX_LEAST << DX_FRACTION, window);
	/* A queue of a whole round trip leaves one packet. */
	if (drained < round_trips)
		least = max(least, window - mul_u64_u64_div_u64(window - (1ULL << DX_FRACTION), drained, round_trips));
	dx_set_window(dx, tp, least);
	/* Slow start is over for good: below an old threshold it would begin again. */
	WRITE_ONCE(tp->snd_ssthresh, max_t(u32, tcp_snd_cwnd(tp), DX_LEAST));
	dx->stale = true;
}

static void dx_in_ack_event(struct sock *sk, u32 flags)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dx *dx = inet_csk_ca(sk);

	if (dx->stamps.measured) {
		dx_measure(dx);
		if (stop_at_sample && tcp_in_slow_start(tp) &&
		    dx_queueing(dx, dx->stamps.one_way) * 1000 >= headroom)
			WRITE_ONCE(tp->snd_ssthresh, tcp_snd_cwnd(tp));
		dx->stamps.measured = false;
	}
	if (after(tp->snd_una, dx->round_end)) {
		dx->round_end = tp->snd_nxt;
		dx_end_round(dx, tp);
	}
}

static void dx_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dx *dx = inet_csk_ca(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		tcp_slow_start(tp, acked);
	} else if (dx->raise) {
		dx->raise = false;
		dx_set_window(dx, tp, dx_window(dx, tp) + (1ULL << DX_FRACTION));
	}
}

static u32 dx_ssthresh(struct sock *sk)
{
	struct dx *dx = inet_csk_ca(sk);

	dx->stale = true;
	dx->raise = false;
	return max(tcp_snd_cwnd(tcp_sk(sk)) / 2, (u32)DX_LEAST);
}

static void dx_init(struct sock *sk)
{
	struct dx *dx = inet_csk_ca(sk);

	memset(dx, 0, sizeof(*dx));
	dx->round_end = tcp_sk(sk)->snd_una;
}

static struct tcp_congestion_ops dx __read_mostly = {
	.init = dx_init,
	.in_ack_event = dx_in_ack_event,
	.cong_avoid = dx_cong_avoid,
	.ssthresh = dx_ssthresh,
	.undo_cwnd = tcp_reno_undo_cwnd,
	.flags = TCP_CONG_STAMPS,
	.owner = THIS_MODULE,
	.name = "dx",
};

static int __init dx_register(void)
{
	BUILD_BUG_ON(sizeof(struct dx) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&dx);
}

static void __exit dx_unregister(void)
{
	tcp_unregister_congestion_control(&dx);
}

module_init(dx_register);
module_exit(dx_unregister);

MODULE_AUTHOR("Firstlight");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("DX: a window that follows the network's queueing delay");
