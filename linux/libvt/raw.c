/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * syscall(): the kernel's calls by number. Runtimes wait on futexes that way (Rust's standard library, glib), and some
 * programs read clocks. A call for which LibVT has a function goes to that function.
 */
#define _GNU_SOURCE
#include "vt.h"

#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>

/* Calls younger than the headers that this is built with, the same on all machines. */
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_futex_wait
#define SYS_futex_wait 455
#endif
#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

#define AT(type, index) ((type)arguments[index])

/* The time-out of a futex call in the machine's time: most operations have a moment, the plain wait a span. */
static const struct timespec *futex_timeout(int operation, const struct timespec *given, struct timespec *room)
{
	clockid_t clock = operation & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;

	switch (operation & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
		return vt_wait(given, room);
	case FUTEX_LOCK_PI:
		return vt_moment(CLOCK_REALTIME, given, room);
	case FUTEX_WAIT_BITSET:
	case FUTEX_WAIT_REQUEUE_PI:
	case FUTEX_LOCK_PI2:
		return vt_moment(clock, given, room);
	default:
		return given; /* no time, but a number */
	}
}

/* A call with its arguments; those that it does not have are ignored. */
static long call(long number, long arguments[6])
{
	return next_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

/* The same with one argument in another place. */
static long call_with(long number, long arguments[6], int index, const void *other)
{
	arguments[index] = (long)other;
	return call(number, arguments);
}

/* clock_nanosleep() returns the error, the kernel's call sets it. */
static long sleep_on_clock(long arguments[6])
{
	int error = clock_nanosleep(AT(clockid_t, 0), AT(int, 1), AT(void *, 2), AT(void *, 3));

	if (!error)
		return 0;
	errno = error;
	return -1;
}

EXPORT long syscall(long number, ...)
{
	struct timespec room;
	long arguments[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	vt_begin();
	switch (number) {
	case SYS_clock_gettime:
		return clock_gettime(AT(clockid_t, 0), AT(void *, 1));
	case SYS_gettimeofday:
		return gettimeofday(AT(void *, 0), AT(void *, 1));
	case SYS_clock_settime:
		return clock_settime(AT(clockid_t, 0), AT(void *, 1));
	case SYS_settimeofday:
		return settimeofday(AT(void *, 0), AT(void *, 1));
	case SYS_nanosleep:
		return nanosleep(AT(void *, 0), AT(void *, 1));
	case SYS_clock_nanosleep:
		return sleep_on_clock(arguments);
	case SYS_ppoll:
		return ppoll(AT(void *, 0), AT(nfds_t, 1), AT(void *, 2), AT(void *, 3));
	case SYS_epoll_pwait:
		return epoll_pwait(AT(int, 0), AT(void *, 1), AT(int, 2), AT(int, 3), AT(void *, 4));
	case SYS_timerfd_settime:
		return timerfd_settime(AT(int, 0), AT(int, 1), AT(void *, 2), AT(void *, 3));
	case SYS_timerfd_gettime:
		return timerfd_gettime(AT(int, 0), AT(void *, 1));
#ifdef SYS_time
	case SYS_time:
		return time(AT(void *, 0));
	case SYS_poll:
		return poll(AT(void *, 0), AT(nfds_t, 1), AT(int, 2));
	case SYS_select:
		return select(AT(int, 0), AT(void *, 1), AT(void *, 2), AT(void *, 3), AT(void *, 4));
	case SYS_epoll_wait:
		return epoll_wait(AT(int, 0), AT(void *, 1), AT(int, 2), AT(int, 3));
#endif
#ifdef SYS_epoll_pwait2
	case SYS_epoll_pwait2:
		return epoll_pwait2(AT(int, 0), AT(void *, 1), AT(int, 2), AT(void *, 3), AT(void *, 4));
#endif
	case SYS_pselect6:
		return call_with(number, arguments, 4, vt_wait(AT(void *, 4), &room));
	case SYS_futex:
		return call_with(number, arguments, 3, futex_timeout(AT(int, 1), AT(void *, 3), &room));
	case SYS_futex_waitv:
		return call_with(number, arguments, 3, vt_moment(AT(clockid_t, 4), AT(void *, 3), &room));
	case SYS_futex_wait:
		return call_with(number, arguments, 4, vt_moment(AT(clockid_t, 5), AT(void *, 4), &room));
	case SYS_execve:
		return execve(AT(void *, 0), AT(void *, 1), AT(void *, 2));
	default:
		return call(number, arguments);
	}
}
