// SPDX-License-Identifier: GPL-2.0
/*
 * The clock as programs read it without a system call (firstlight_clock.h).
 *
 * Reads count as if they were system calls: so many as would take no virtual time may be made, and their work is given
 * to the host's processors at the next entry into the kernel. A run is the same to the bit with or without.
 */
#include <linux/irqflags.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/time-internal.h>
#include <linux/time_namespace.h>
#include <linux/timekeeping.h>
#include "firstlight_clock.h"
#include "firstlight_cores.h"

/* Without processors of hosts, so many reads at most are made without a system call. */
#define READS_MAX 4096

static unsigned int offered, looks_offered;

/* A time namespace has a clock of its own. */
static bool has_common_clock(void)
{
	return current->nsproxy && current->nsproxy->time_ns == &init_time_ns;
}

void firstlight_clock_offer(struct firstlight_clock *clock)
{
	unsigned long flags;
	ktime_t now;

	/* What the kernel reads here does not count: it is no look of the program's. */
	local_irq_save(flags);
	now = ktime_get();
	local_irq_restore(flags);
	clock->monotonic = ktime_to_ns(now);
	clock->realtime = ktime_to_ns(ktime_mono_to_real(now));
	clock->seconds = ktime_get_real_seconds();
	offered = min(firstlight_clock_reads(), READS_MAX);
	looks_offered = has_common_clock() ? min(time_travel_free_looks(), offered) : 0;
	clock->reads = offered;
	clock->looks = looks_offered;
}

unsigned int firstlight_clock_taken(const struct firstlight_clock *clock)
{
	unsigned int taken = offered - min(offered, clock->reads);

	time_travel_looked(looks_offered - min(looks_offered, clock->looks));
	firstlight_clock_was_read(taken);
	return taken;
}
