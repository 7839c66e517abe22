// SPDX-License-Identifier: GPL-2.0
/*
 * reTCP as a loadable congestion control, "retcp". The algorithm is in retcp.h, the hooks are in retcp_sock.h.
 *
 * The circuit marks reach it through negotiated ECN: net.ipv4.tcp_ecn=1 on both hosts (README.md).
 */
#include <linux/bug.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/version.h>
#include <net/tcp.h>

#include "retcp.h"

static unsigned int alpha = RETCP_ALPHA_DEFAULT;
static unsigned int beta = RETCP_BETA_DEFAULT;

static int retcp_set_alpha(const char *text, const struct kernel_param *parameter)
{
	return param_set_uint_minmax(text, parameter, RETCP_ALPHA_MIN, RETCP_ALPHA_MAX);
}

static int retcp_set_beta(const char *text, const struct kernel_param *parameter)
{
	return param_set_uint_minmax(text, parameter, RETCP_BETA_MIN, RETCP_BETA_MAX);
}

static const struct kernel_param_ops retcp_alpha_ops = { .set = retcp_set_alpha, .get = param_get_uint };
static const struct kernel_param_ops retcp_beta_ops = { .set = retcp_set_beta, .get = param_get_uint };

module_param_cb(alpha, &retcp_alpha_ops, &alpha, 0644);
MODULE_PARM_DESC(alpha, "the window's factor when a circuit comes up, in percent (100 to 10000, by default 200)");
module_param_cb(beta, &retcp_beta_ops, &beta, 0644);
MODULE_PARM_DESC(beta, "the window's factor when a circuit goes down, in percent (0 to 100, by default 50)");

#define RETCP_HOOK(type, name, ...) static type name(__VA_ARGS__)

static inline __u32 retcp_alpha(void)
{
	return READ_ONCE(alpha);
}

static inline __u32 retcp_beta(void)
{
	return READ_ONCE(beta);
}

static inline void retcp_store_cwnd(struct tcp_sock *tp, __u32 packets)
{
	tcp_snd_cwnd_set(tp, packets);
}

static inline __u32 retcp_pacing_ss(const struct sock *sk)
{
	return READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_pacing_ss_ratio);
}

static inline __u32 retcp_pacing_ca(const struct sock *sk)
{
	return READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_pacing_ca_ratio);
}

static inline void retcp_no_ecn(void)
{
	pr_warn_ratelimited("retcp: a connection without ECN cannot see circuit marks: "
			    "set net.ipv4.tcp_ecn=1 on both hosts\n");
}

#include "retcp_sock.h"

/* cong_control() gets the ACK since 6.10; before, only the rate sample of the ACK. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
static void retcp_hook_cong_control_short(struct sock *sk, const struct rate_sample *rs)
{
	retcp_hook_cong_control(sk, 0, 0, rs);
}
#define retcp_hook_cong_control retcp_hook_cong_control_short
#endif

static struct tcp_congestion_ops retcp __read_mostly = {
	.init = retcp_hook_init,
	.in_ack_event = retcp_hook_in_ack_event,
	.cong_control = retcp_hook_cong_control,
	.ssthresh = retcp_hook_ssthresh,
	.set_state = retcp_hook_set_state,
	.undo_cwnd = retcp_hook_undo_cwnd,
	.owner = THIS_MODULE,
	.name = "retcp",
};

static int __init retcp_register(void)
{
	BUILD_BUG_ON(sizeof(struct retcp) > ICSK_CA_PRIV_SIZE);
	BUILD_BUG_ON(RETCP_ACK_ECE != CA_ACK_ECE);
	BUILD_BUG_ON(RETCP_ECN_CWR_DUE != TCP_ECN_QUEUE_CWR);
#ifdef TCP_ECN_MODE_RFC3168
	BUILD_BUG_ON(RETCP_ECN_CLASSIC != TCP_ECN_MODE_RFC3168);
#else
	BUILD_BUG_ON(RETCP_ECN_CLASSIC != TCP_ECN_OK);
#endif
	BUILD_BUG_ON((int)RETCP_OPEN != TCP_CA_Open || (int)RETCP_DISORDER != TCP_CA_Disorder);
	BUILD_BUG_ON((int)RETCP_CWR != TCP_CA_CWR || (int)RETCP_RECOVERY != TCP_CA_Recovery);
	BUILD_BUG_ON((int)RETCP_LOSS != TCP_CA_Loss);
	return tcp_register_congestion_control(&retcp);
}

static void __exit retcp_unregister(void)
{
	tcp_unregister_congestion_control(&retcp);
}

module_init(retcp_register);
module_exit(retcp_unregister);

MODULE_AUTHOR("Firstlight");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("reTCP: a window that follows the circuits of a reconfigurable datacenter network");
