/* SPDX-License-Identifier: GPL-2.0 */
/*
 * reTCP: TCP for reconfigurable datacenter networks (Mukerjee et al., "Adapting TCP for Reconfigurable Datacenter
 * Networks", NSDI 2020, section 5.3), as plain functions on a small state: the kernel module, the BPF program and the
 * unit test in user space all include this file.
 *
 * The switch sets ECN-Echo on ACKs while a circuit is up, or about to come up, for the data's direction. reTCP is an
 * edge detector on that bit: it multiplies the window by alpha when marks begin and by beta when they end, and is
 * NewReno otherwise (RFC 5681; recovery by proportional rate reduction, RFC 6937 and RFC 9937). The slow start
 * threshold stays at an edge, so that a raised window goes on in congestion avoidance.
 *
 * The stack interprets such a mark as congestion, enters its state CWR and asks for a lower threshold. reTCP ignores
 * that: a reduction begins only for a loss (states Recovery and Loss, a loss that a tail loss probe repaired) and for a
 * full queue in this host. README.md explains how reTCP distinguishes these, and why.
 *
 * At each hook of the stack the caller passes the stack's state to retcp_take(), calls the hook's function, and writes
 * back the window and the threshold. Windows are counted in packets.
 */
#ifndef RETCP_H
#define RETCP_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif
#ifdef __KERNEL__
#include <linux/math64.h>
#define RETCP_DIVIDE(value, by) div_u64(value, by)
#else
#define RETCP_DIVIDE(value, by) ((value) / (by))
#endif

#define RETCP_ALPHA_DEFAULT 200 /* percent */
#define RETCP_ALPHA_MIN 100
#define RETCP_ALPHA_MAX 10000
#define RETCP_BETA_DEFAULT 50
#define RETCP_BETA_MIN 0
#define RETCP_BETA_MAX 100

#define RETCP_MIN_WINDOW 2		/* The least window that any controller sets. */
#define RETCP_MAX_WINDOW 0x7fffffffU	/* The stack treats windows as positive ints. */
#define RETCP_DUP_THRESHOLD 3		/* The usual reordering threshold, in packets (RFC 5681, section 3.2). */

/* Congestion states with the stack's numbers. */
enum retcp_phase { RETCP_OPEN, RETCP_DISORDER, RETCP_CWR, RETCP_RECOVERY, RETCP_LOSS };

/* State of the stack at a hook. */
struct retcp_view {
	__u32 cwnd, ssthresh, clamp;
	__u32 in_flight;
	__u32 una;		/* first sequence number not acknowledged */
	__u32 next;		/* first sequence number not sent */
	__u32 high;		/* `next` when the stack entered its state */
	__u32 lost;		/* packets marked lost since the start */
	__u32 sent;		/* data packets sent since the start, copies included */
	__u32 copies;		/* retransmissions since the start */
	__u32 copies_out;	/* retransmissions in flight */
	__u32 needless;		/* duplicates that the receiver has reported (RFC 2883) */
	__u32 reordering;	/* observed reordering, in packets */
	__u32 used;		/* most packets in flight during the last window */
	__u8 phase;
	__u8 limited;		/* the window limits sending */
};

/* State of a connection, in the stack's private area for controllers (104 bytes). */
struct retcp {
	__u32 cwnd, ssthresh;	/* as last seen or set */
	__u32 credit;		/* packets acknowledged since the last increase */
	__u32 prior_cwnd, prior_ssthresh;
	__u32 recover;		/* `next` at the reduction: losses before it are of one window (RFC 6582, section 3.2) */
	__u32 prr_delivered, prr_sent;
	__u32 prior_copies, prior_needless;
	__u32 una, lost;	/* after the last ACK */
	__u8 circuit;		/* the last ACK carried a mark */
	__u8 reducing;		/* state in which a reduction by reTCP began; 0 without one */
	__u8 undoable;		/* the last reduction may still prove unnecessary */
	__u8 asked;		/* the stack got a lower threshold; its change of state follows */
	__u8 in_ack;		/* between the two hooks of one ACK */
	__u8 cwr_in_ack;	/* state CWR was entered during this ACK */
};

static inline __u32 retcp_clamp(__u32 value, __u32 low, __u32 high)
{
	return value < low ? low : value > high ? high : value;
}

/* value * percent / 100, rounded down, without overflow. */
static inline __u32 retcp_percent(__u32 value, __u32 percent)
{
	if (percent && value / 100 >= RETCP_MAX_WINDOW / percent)
		return RETCP_MAX_WINDOW;
	return value / 100 * percent + value % 100 * percent / 100;
}

/* Whether a is before b in sequence space. */
static inline int retcp_before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

/* The first call in every hook except the change of state: the stack may have changed the window. */
static inline void retcp_take(struct retcp *r, const struct retcp_view *v)
{
	r->cwnd = v->cwnd;
	r->ssthresh = v->ssthresh;
}

static inline void retcp_set_cwnd(struct retcp *r, const struct retcp_view *v, __u32 cwnd)
{
	__u32 most = v->clamp < RETCP_MAX_WINDOW ? v->clamp : RETCP_MAX_WINDOW;

	r->cwnd = retcp_clamp(cwnd, 1, most);
}

/* A connection begins, or changes to this controller. */
static inline void retcp_start(struct retcp *r, const struct retcp_view *v)
{
	*r = (struct retcp){ .una = v->una, .lost = v->lost };
	retcp_take(r, v);
}

/* ---- NewReno's window ---- */

/* Slow start up to the threshold, then one packet more per acknowledged window (RFC 5681, section 3.1). */
static inline void retcp_grow(struct retcp *r, const struct retcp_view *v, __u32 acked)
{
	__u32 cwnd = r->cwnd;

	if (cwnd < r->ssthresh) {
		__u32 room = r->ssthresh - cwnd;
		__u32 step = acked < room ? acked : room;

		cwnd += step;
		acked -= step;
	}
	if (acked) {
		__u32 per = cwnd ? cwnd : 1;

		/* Credit from a larger window is worth one packet. */
		if (r->credit >= per) {
			r->credit = 0;
			cwnd++;
		}
		r->credit += acked;
		if (r->credit >= per) {
			cwnd += r->credit / per;
			r->credit %= per;
		}
	}
	retcp_set_cwnd(r, v, cwnd);
}

/* Whether the window limits sending. In slow start a window may also grow when half of it was used. */
static inline int retcp_limited(const struct retcp *r, const struct retcp_view *v)
{
	return v->limited || (r->cwnd < r->ssthresh && r->cwnd / 2 < v->used);
}

/* ---- Reduction ---- */

/* A loss: saves the state for an undo, and halves the threshold (RFC 5681, equation 4, on the window). */
static inline void retcp_lower(struct retcp *r, const struct retcp_view *v)
{
	__u32 near = r->cwnd / 2 + r->cwnd / 4;

	r->recover = v->next;
	r->prior_cwnd = r->cwnd;
	r->prior_ssthresh = r->ssthresh > near ? r->ssthresh : near;
	r->prior_copies = v->copies - v->copies_out;
	r->prior_needless = v->needless;
	r->undoable = 1;
	r->ssthresh = retcp_clamp(r->cwnd / 2, RETCP_MIN_WINDOW, RETCP_MAX_WINDOW);
}

static inline void retcp_begin_reduction(struct retcp *r, const struct retcp_view *v, __u8 phase)
{
	r->credit = 0;
	r->prr_delivered = 0;
	r->prr_sent = v->sent;
	r->reducing = phase;
}

/*
 * Proportional rate reduction (RFC 6937, section 3; RFC 9937, section 6). RecoverFS is the window before the reduction
 * instead of the flight, as for Linux's own controllers and Firstlight's simulated ones.
 */
static inline void retcp_reduce(struct retcp *r, const struct retcp_view *v, __u32 delivered, int safe)
{
	__u32 out = v->sent - r->prr_sent;
	__u32 quota = 0;

	if (!delivered || !r->prior_cwnd)
		return;
	r->prr_delivered += delivered;
	if (v->in_flight > r->ssthresh) {
		__u64 due = (__u64)r->ssthresh * r->prr_delivered + r->prior_cwnd - 1;

		due = RETCP_DIVIDE(due, r->prior_cwnd);
		if (due > out)
			quota = due - out;
	} else {
		if (r->prr_delivered > out)
			quota = r->prr_delivered - out;
		if (quota < delivered)
			quota = delivered;
		quota += !!safe;
		if (quota > r->ssthresh - v->in_flight)
			quota = r->ssthresh - v->in_flight;
	}
	if (!quota && !out) /* The first retransmission is sent at once. */
		quota = 1;
	retcp_set_cwnd(r, v, v->in_flight + quota);
}

/*
 * Ends the reduction when everything sent before the loss is acknowledged. The stack's recovery may end earlier: when
 * it enters Recovery from CWR, it keeps the end that CWR had.
 */
static inline void retcp_complete(struct retcp *r, const struct retcp_view *v)
{
	if (!r->reducing || retcp_before(v->una, r->recover))
		return;
	retcp_set_cwnd(r, v, r->ssthresh);
	r->reducing = 0;
}

/* Undoes the last reduction, which was unnecessary. */
static inline void retcp_undo(struct retcp *r, const struct retcp_view *v)
{
	if (!r->undoable)
		return;
	retcp_set_cwnd(r, v, r->cwnd > r->prior_cwnd ? r->cwnd : r->prior_cwnd);
	if (r->ssthresh < r->prior_ssthresh)
		r->ssthresh = r->prior_ssthresh;
	r->reducing = 0;
	r->undoable = 0;
}

/* Whether every retransmission since the reduction was reported as a duplicate (RFC 3708). */
static inline int retcp_all_needless(const struct retcp *r, const struct retcp_view *v)
{
	__u32 copies = v->copies - r->prior_copies;
	__u32 needless = v->needless - r->prior_needless;

	return r->undoable && copies && copies < RETCP_MAX_WINDOW && needless >= copies;
}

/* ---- The stack's hooks ---- */

/*
 * An ACK has arrived: the edge detector. During a reduction PRR sets the window, so that the factor applies to the
 * threshold, which is the window at the end of the reduction.
 */
static inline void retcp_on_ack(struct retcp *r, const struct retcp_view *v, int marked, __u32 alpha, __u32 beta)
{
	__u32 factor = marked ? alpha : beta;

	retcp_take(r, v);
	r->in_ack = 1;
	r->asked = 0;
	r->cwr_in_ack = 0;
	if (r->circuit == marked)
		return;
	r->circuit = marked;
	if (r->reducing)
		r->ssthresh = retcp_clamp(retcp_percent(r->ssthresh, factor), RETCP_MIN_WINDOW, RETCP_MAX_WINDOW);
	else
		retcp_set_cwnd(r, v, retcp_clamp(retcp_percent(r->cwnd, factor), RETCP_MIN_WINDOW, RETCP_MAX_WINDOW));
}

/*
 * The same ACK, after the stack has detected losses and changed its state: it reports `delivered` and `lost` packets.
 * The stack's recovery may last longer than reTCP's, if it began twice: losses are of a new window then.
 */
static inline void retcp_after_ack(struct retcp *r, const struct retcp_view *v, __u32 delivered, __u32 lost)
{
	int advanced = retcp_before(r->una, v->una);
	int losses = v->lost != r->lost;

	retcp_take(r, v);
	r->una = v->una;
	r->lost = v->lost;
	r->in_ack = 0;
	if (retcp_all_needless(r, v))
		retcp_undo(r, v);
	retcp_complete(r, v);
	if (losses && !r->reducing && v->phase == RETCP_RECOVERY) {
		retcp_lower(r, v);
		retcp_begin_reduction(r, v, RETCP_RECOVERY);
	}
	if (r->reducing)
		retcp_reduce(r, v, delivered, advanced && !lost);
	else if (delivered && (advanced || v->reordering > RETCP_DUP_THRESHOLD) && retcp_limited(r, v))
		retcp_grow(r, v, delivered);
}

/*
 * The stack asks for a threshold. On a marked ACK the mark may be the only reason: the threshold stays, and if there
 * was a loss too, the change of state shows it later. It also stays for further losses of the same window.
 */
static inline void retcp_on_threshold(struct retcp *r, const struct retcp_view *v)
{
	retcp_take(r, v);
	retcp_complete(r, v);
	if (r->reducing || (r->in_ack && r->circuit))
		return;
	retcp_lower(r, v);
	r->asked = 1;
}

/* States Open and Disorder: recovery or CWR has ended. */
static inline void retcp_settle(struct retcp *r, const struct retcp_view *v)
{
	retcp_take(r, v);
	if (v->phase == RETCP_CWR && r->cwr_in_ack && !r->reducing) {
		/* The stack entered and left CWR in one marked ACK: a tail loss probe had repaired a loss. */
		retcp_lower(r, v);
		retcp_set_cwnd(r, v, r->ssthresh);
	} else if (v->phase >= RETCP_RECOVERY && retcp_before(v->una, v->high)) {
		/* Recovery ended early: the stack found that nothing had been lost (RFC 5682, RFC 3522). */
		retcp_undo(r, v);
	} else if (v->phase == RETCP_CWR && r->reducing == RETCP_CWR) {
		retcp_set_cwnd(r, v, r->ssthresh);
		r->reducing = 0;
	}
	retcp_complete(r, v);
}

/* The retransmission timer has expired; the stack has set the window to the packets in flight and one more. */
static inline void retcp_time_out(struct retcp *r, const struct retcp_view *v)
{
	r->ssthresh = v->ssthresh;
	if (v->cwnd == r->cwnd) /* no timeout: the path MTU became smaller, and long packets are retransmitted */
		r->undoable = 0;
	else if (!r->asked && !r->reducing && v->phase != RETCP_LOSS)
		retcp_lower(r, v); /* from the window before the timeout */
	r->cwnd = v->cwnd;
	r->credit = 0;
	r->reducing = 0;
}

/* The stack is about to change its state from v->phase to `to`. */
static inline void retcp_on_phase(struct retcp *r, const struct retcp_view *v, __u8 to)
{
	switch (to) {
	case RETCP_OPEN:
	case RETCP_DISORDER:
		retcp_settle(r, v);
		break;
	case RETCP_CWR:
		retcp_take(r, v);
		r->cwr_in_ack = r->in_ack;
		if (r->asked)
			retcp_begin_reduction(r, v, to);
		break;
	case RETCP_RECOVERY:
		retcp_take(r, v);
		retcp_complete(r, v);
		if (!r->asked && !r->reducing)
			retcp_lower(r, v);
		if (!r->reducing)
			retcp_begin_reduction(r, v, to);
		if (!r->in_ack) /* the reordering timer detected the loss: no ACK follows */
			retcp_reduce(r, v, 1, 0);
		break;
	case RETCP_LOSS:
		retcp_time_out(r, v);
		break;
	}
	r->asked = 0;
}

/*
 * Pacing rate in bytes per second, like the stack's for controllers without a rate of their own: twice the window per
 * round trip in the first half of slow start, 1.2 times later (tcp_pacing_ss_ratio, tcp_pacing_ca_ratio, in percent).
 * The rate also bounds the bytes in this host's queues. `srtt` is in eighths of a microsecond and not 0.
 */
static inline __u64 retcp_pacing(const struct retcp *r, __u32 packets_out, __u32 mss, __u32 srtt, __u32 ss, __u32 ca)
{
	__u32 window = retcp_clamp(r->cwnd, packets_out, 1 << 22);
	__u64 bytes = (__u64)mss * window * (r->cwnd < r->ssthresh / 2 ? ss : ca);

	return RETCP_DIVIDE(bytes * (8 * 1000000 / 100), srtt);
}

#endif
