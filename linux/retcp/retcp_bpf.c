// SPDX-License-Identifier: GPL-2.0
/*
 * reTCP as BPF struct_ops, for a stock kernel with BTF (6.10 or newer). The algorithm is in retcp.h, the hooks are in
 * retcp_sock.h. README.md says how to build, load and remove it.
 *
 * The parameters, in percent, are fixed when it is built: -DRETCP_ALPHA=150 -DRETCP_BETA=60.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "retcp.h"

#ifndef RETCP_ALPHA
#define RETCP_ALPHA RETCP_ALPHA_DEFAULT
#endif
#ifndef RETCP_BETA
#define RETCP_BETA RETCP_BETA_DEFAULT
#endif
_Static_assert(RETCP_ALPHA >= RETCP_ALPHA_MIN && RETCP_ALPHA <= RETCP_ALPHA_MAX, "RETCP_ALPHA: 100 to 10000 percent");
_Static_assert(RETCP_BETA >= RETCP_BETA_MIN && RETCP_BETA <= RETCP_BETA_MAX, "RETCP_BETA: 0 to 100 percent");
_Static_assert(sizeof(struct retcp) <= sizeof(((struct inet_connection_sock *)0)->icsk_ca_priv), "private area");
_Static_assert(CA_ACK_ECE == 4, "ECN-Echo in the flags of in_ack_event()");

char _license[] SEC("license") = "GPL";

#define RETCP_HOOK(type, name, ...) SEC("struct_ops/" #name) type BPF_PROG(name, __VA_ARGS__)

static inline struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static inline struct inet_connection_sock *inet_csk(const struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

static inline void *inet_csk_ca(const struct sock *sk)
{
	return (void *)inet_csk(sk)->icsk_ca_priv;
}

static inline __u32 retcp_alpha(void)
{
	return RETCP_ALPHA;
}

static inline __u32 retcp_beta(void)
{
	return RETCP_BETA;
}

static inline void retcp_store_cwnd(struct tcp_sock *tp, __u32 packets)
{
	tp->snd_cwnd = packets;
}

static inline __u32 retcp_pacing_ss(const struct sock *sk)
{
	return sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_pacing_ss_ratio;
}

static inline __u32 retcp_pacing_ca(const struct sock *sk)
{
	return sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_pacing_ca_ratio;
}

static inline void retcp_no_ecn(void)
{
	bpf_printk("retcp: a connection without ECN cannot see circuit marks: set net.ipv4.tcp_ecn=1 on both hosts");
}

#include "retcp_sock.h"

SEC(".struct_ops")
struct tcp_congestion_ops retcp = {
	.init = (void *)retcp_hook_init,
	.in_ack_event = (void *)retcp_hook_in_ack_event,
	.cong_control = (void *)retcp_hook_cong_control,
	.ssthresh = (void *)retcp_hook_ssthresh,
	.set_state = (void *)retcp_hook_set_state,
	.undo_cwnd = (void *)retcp_hook_undo_cwnd,
	.name = "retcp",
};
