// SPDX-License-Identifier: GPL-2.0
/*
 * The smallest reTCP that the paper's text describes: NewReno, and an edge detector on ECN-Echo that multiplies the
 * window. It needs a kernel that shows ECN-Echo without ECN (ece-shown.patch). For comparison only: use linux/retcp.
 */
#include <linux/module.h>
#include <net/tcp.h>

static unsigned int alpha = 200;
static unsigned int beta = 50;
static bool threshold;

module_param(alpha, uint, 0644);
module_param(beta, uint, 0644);
module_param(threshold, bool, 0644);
MODULE_PARM_DESC(threshold, "the factors are put on the slow start threshold too");

static void plain_init(struct sock *sk)
{
	*(u8 *)inet_csk_ca(sk) = 0;
}

static void plain_in_ack_event(struct sock *sk, u32 flags)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u8 *circuit = inet_csk_ca(sk);
	u8 marked = !!(flags & CA_ACK_ECE);
	u32 factor = marked ? alpha : beta;

	if (*circuit == marked)
		return;
	*circuit = marked;
	tcp_snd_cwnd_set(tp, min(max(tcp_snd_cwnd(tp) * factor / 100, 2U), tp->snd_cwnd_clamp));
	if (threshold && tp->snd_ssthresh < TCP_INFINITE_SSTHRESH)
		tp->snd_ssthresh = max(tp->snd_ssthresh * factor / 100, 2U);
}

static struct tcp_congestion_ops plain __read_mostly = {
	.init = plain_init,
	.in_ack_event = plain_in_ack_event,
	.ssthresh = tcp_reno_ssthresh,
	.cong_avoid = tcp_reno_cong_avoid,
	.undo_cwnd = tcp_reno_undo_cwnd,
	.owner = THIS_MODULE,
	.name = "retcp",
};

static int __init plain_register(void)
{
	return tcp_register_congestion_control(&plain);
}

static void __exit plain_unregister(void)
{
	tcp_unregister_congestion_control(&plain);
}

module_init(plain_register);
module_exit(plain_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("reTCP on the window alone, to compare with");
