/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The common part of the simulated machine and the program that calls it. */
#ifndef LIBVT_TEST_CALLS_H
#define LIBVT_TEST_CALLS_H

#include <stdint.h>
#include <time.h>

/* Seconds since the start, on all clocks, and what is left of a wait when it ends. */
#define PASSED 100
#define LEFT 3
/* A wait without an end. */
#define FOREVER -1
#define FUTEX_WAITV 449
#define FUTEX_WAIT_NEW 455

/* The last value that the machine was given. */
extern int64_t machine_saw;

/* Seconds at which each clock starts. A processor's time starts at zero. */
static inline int64_t start_of(clockid_t clock)
{
	switch (clock) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
		return 1700000000;
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_COARSE:
		return 5000;
	case CLOCK_MONOTONIC_RAW:
		return 5001;
	case CLOCK_BOOTTIME:
		return 7000;
	case CLOCK_TAI:
		return 1700000037;
	default:
		return 0;
	}
}

#endif
