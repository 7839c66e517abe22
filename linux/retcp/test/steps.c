// SPDX-License-Identifier: GPL-2.0
/*
 * retcp.h in user space: acts as the stack for a sequence of steps, one per line of standard input, and prints the
 * window and the threshold after each step. The arguments are alpha and beta in percent.
 *
 *   ack N      an ACK without a mark that delivers N packets
 *   marked N   an ACK with a mark; like the stack, it asks for a threshold and enters CWR
 *   loss       a loss that no ACK shows, and its whole recovery
 *   turn       as `loss`, but the marks begin or end during the recovery
 *   timeout    the retransmission timer expires; then everything is acknowledged
 *   early      as `timeout`, but the stack leaves the state before everything sent is acknowledged
 *   needless   as `loss`, but then every copy is reported as a duplicate
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../retcp.h"

static struct retcp r;
static struct retcp_view v = { .cwnd = 10, .ssthresh = 0xffffffff, .clamp = 0xffffffff, .limited = 1 };

static void store(void)
{
	v.cwnd = r.cwnd;
	v.ssthresh = r.ssthresh;
}

static void enter(__u8 phase)
{
	retcp_on_phase(&r, &v, phase);
	store();
	v.phase = phase;
}

static void ask(void)
{
	retcp_on_threshold(&r, &v);
	v.ssthresh = r.ssthresh;
}

static void ack(__u32 delivered, int marked, __u32 alpha, __u32 beta)
{
	v.una = v.next += delivered;
	retcp_on_ack(&r, &v, marked, alpha, beta);
	store();
	if (v.phase == RETCP_CWR)
		enter(RETCP_OPEN);
	if (marked) {
		ask();
		enter(RETCP_CWR);
	}
	retcp_after_ack(&r, &v, delivered, 0);
	store();
}

/* In CWR the stack does not ask for a threshold again. */
static void lose(__u32 alpha, __u32 beta)
{
	if (v.phase != RETCP_CWR)
		ask();
	enter(RETCP_RECOVERY);
	if (alpha) {
		retcp_on_ack(&r, &v, !r.circuit, alpha, beta);
		store();
		retcp_after_ack(&r, &v, 0, 0);
		store();
	}
	v.copies++;
	enter(RETCP_OPEN);
}

static void time_out(__u32 missing)
{
	if (v.phase != RETCP_CWR)
		ask();
	v.cwnd = 1;
	enter(RETCP_LOSS);
	v.copies++;
	v.high = v.una + missing;
	enter(RETCP_OPEN);
}

int main(int count, char **arguments)
{
	char verb[16];
	unsigned int delivered;

	if (count != 3)
		return 2;
	retcp_start(&r, &v);
	while (scanf("%15s %u", verb, &delivered) == 2) {
		if (!strcmp(verb, "ack") || !strcmp(verb, "marked")) {
			ack(delivered, verb[0] == 'm', atoi(arguments[1]), atoi(arguments[2]));
		} else if (!strcmp(verb, "loss")) {
			lose(0, 0);
		} else if (!strcmp(verb, "turn")) {
			lose(atoi(arguments[1]), atoi(arguments[2]));
		} else if (!strcmp(verb, "timeout")) {
			time_out(0);
		} else if (!strcmp(verb, "early")) {
			time_out(1);
		} else if (!strcmp(verb, "needless")) {
			lose(0, 0);
			v.needless = v.copies;
			ack(0, r.circuit, 100, 100);
		} else {
			return 2;
		}
		printf("%u %u\n", r.cwnd, r.ssthresh);
	}
	return 0;
}
