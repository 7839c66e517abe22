/* SPDX-License-Identifier: GPL-2.0 */
/* Time of the hosts' processors: what system calls and packets take of it. */
#ifndef FIRSTLIGHT_CORES_H
#define FIRSTLIGHT_CORES_H

#include <linux/types.h>
#include "firstlight.h"

struct net_device;
struct firstlight_core_times;

/* A system call that is being carried out. */
struct firstlight_call {
	/* The processors of the caller's host; NULL when the call takes no time. */
	struct firstlight_core_times *cores;
	/* What the caller had of these when the call began. */
	unsigned long switches, copied;
};

/* Whether hosts have processors: else all below does nothing. */
extern bool firstlight_has_cores;

void __firstlight_call_begins(struct firstlight_call *call, int number);
void __firstlight_call_ends(const struct firstlight_call *call);
void __firstlight_call_polls(int number);

/* Waits until a processor of the caller's host has worked off what a call of this number takes. */
static inline void firstlight_call_begins(struct firstlight_call *call, int number)
{
	call->cores = NULL;
	if (firstlight_has_cores)
		__firstlight_call_begins(call, number);
}

/*
 * Waits likewise for what the call took on its way: the wake-ups of the caller, and the bytes that were copied. Without
 * processors a program that asks what is ready again and again waits too, so that it does not stop time.
 */
static inline void firstlight_call_ends(const struct firstlight_call *call, int number)
{
	if (call->cores)
		__firstlight_call_ends(call);
	else if (!firstlight_has_cores)
		__firstlight_call_polls(number);
}

/* Whether a read of the clock by the caller is one of those that take time in the end. */
bool firstlight_asks_for_time(void);

/* How many reads of the clock the caller may make before it has to wait for its processor. */
unsigned int firstlight_clock_reads(void);

/* Gives so many reads of the clock, which the caller has made by itself, to a processor. */
void firstlight_clock_was_read(unsigned int reads);

/* What the processors of a device's host have done. */
struct firstlight_processors firstlight_processors_of(const struct net_device *device);

/* Whether time has passed for the call itself. */
bool firstlight_call_took_time(const struct firstlight_call *call);

#endif
