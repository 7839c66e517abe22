/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The calls that only let time pass. */
#define _GNU_SOURCE
#include "vt.h"

/*
 * Sleeps for `virtual` nanoseconds of virtual time, and writes the rest to `left` if a signal comes. Returns 0, or -1
 * with errno.
 */
static int rest(int64_t virtual, int64_t *left)
{
	struct timespec wait = vt_timespec(vt_stretch(virtual));
	int result = next_nanosleep(&wait, &wait);

	*left = result ? vt_shrink(vt_ns(wait)) : 0;
	return result;
}

EXPORT int nanosleep(const struct timespec *wait, struct timespec *left)
{
	struct timespec room, real_left;
	int result;

	vt_begin();
	result = next_nanosleep(vt_wait(wait, &room), left ? &real_left : NULL);
	if (result && errno == EINTR && left)
		*left = vt_timespec(vt_shrink(vt_ns(real_left)));
	return result;
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wait, struct timespec *left)
{
	struct timespec room, real_left;
	int error;

	vt_begin();
	if (flags & TIMER_ABSTIME)
		return next_clock_nanosleep(clock, flags, vt_moment(clock, wait, &room), left);
	error = next_clock_nanosleep(clock, flags, vt_wait(wait, &room), left ? &real_left : NULL);
	if (error == EINTR && left)
		*left = vt_timespec(vt_shrink(vt_ns(real_left)));
	return error;
}

EXPORT int usleep(useconds_t microseconds)
{
	int64_t left;

	vt_begin();
	return rest(microseconds * NS_PER_US, &left);
}

EXPORT unsigned int sleep(unsigned int seconds)
{
	int64_t left;

	vt_begin();
	rest(seconds * NS_PER_S, &left);
	return left / NS_PER_S + (left % NS_PER_S > 0);
}

EXPORT int thrd_sleep(const struct timespec *wait, struct timespec *left)
{
	struct timespec room, real_left;
	int result;

	vt_begin();
	result = next_thrd_sleep(vt_wait(wait, &room), left ? &real_left : NULL);
	if (result == -1 && left)
		*left = vt_timespec(vt_shrink(vt_ns(real_left)));
	return result;
}
