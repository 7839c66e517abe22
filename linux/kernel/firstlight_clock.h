/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The clock as programs read it without a system call: what the kernel tells a program's process each time that it goes
 * on. Time stands still until it comes back.
 */
#ifndef FIRSTLIGHT_CLOCK_H
#define FIRSTLIGHT_CLOCK_H

struct firstlight_clock {
	/* Nanoseconds of CLOCK_REALTIME and CLOCK_MONOTONIC. */
	unsigned long long realtime, monotonic;
	/* What time() returns: the seconds of CLOCK_REALTIME at the last tick. */
	long long seconds;
	/* Reads that the program may still make by itself, those of the seconds included. */
	unsigned int reads;
	/* Of these, how many may be of nanoseconds. */
	unsigned int looks;
};

/* Tells a process the time, and how often it may read it. */
void firstlight_clock_offer(struct firstlight_clock *clock);

/* How often it has read it since; these reads count from now on. */
unsigned int firstlight_clock_taken(const struct firstlight_clock *clock);

#endif
