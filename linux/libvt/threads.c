/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Locks, conditions and threads that are waited for up to a moment of a clock. */
#define _GNU_SOURCE
#include "vt.h"

#include <string.h>

/* ---- Conditions ---- */

/* A condition counts the clock that it was made with and offers no way to ask which. The only bit in which two new
 * conditions of the two clocks differ shows it. */
static size_t bit_place;
static unsigned char bit;

static void make_condition(pthread_cond_t *condition, clockid_t clock)
{
	pthread_condattr_t attributes;

	memset(condition, 0, sizeof(*condition));
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, clock);
	pthread_cond_init(condition, &attributes);
	pthread_condattr_destroy(&attributes);
}

__attribute__((constructor(102))) static void find_bit(void)
{
	pthread_cond_t conditions[2];
	const unsigned char *bytes[2] = { (void *)&conditions[0], (void *)&conditions[1] };

	make_condition(&conditions[0], CLOCK_REALTIME);
	make_condition(&conditions[1], CLOCK_MONOTONIC);
	for (size_t i = 0; i < sizeof(*conditions); i++)
		if (bytes[0][i] != bytes[1][i]) {
			bit_place = i;
			bit = bytes[0][i] ^ bytes[1][i];
			return;
		}
	dprintf(STDERR_FILENO, "libvt: this C library does not show which clock a condition counts: use glibc 2.34 to 2.41\n");
	_exit(125);
}

static clockid_t clock_of(const pthread_cond_t *condition)
{
	unsigned char byte;

	if (!bit)
		find_bit();
	byte = __atomic_load_n((const unsigned char *)condition + bit_place, __ATOMIC_RELAXED);
	return byte & bit ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
				  const struct timespec *restrict until)
{
	struct timespec room;

	vt_begin();
	return next_pthread_cond_timedwait(condition, mutex, vt_moment(clock_of(condition), until, &room));
}

EXPORT int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until)
{
	struct timespec room;

	vt_begin();
	return next_cnd_timedwait(condition, mutex, vt_moment(CLOCK_REALTIME, until, &room));
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, clockid_t clock,
				  const struct timespec *restrict until)
{
	struct timespec room;

	vt_begin();
	return next_pthread_cond_clockwait(condition, mutex, clock, vt_moment(clock, until, &room));
}

/* ---- Locks and semaphores ---- */

/* Those that count the time of day. */
#define WAIT_UNTIL(name, type) \
	EXPORT int name(type *restrict lock, const struct timespec *restrict until) \
	{ \
		struct timespec room; \
\
		vt_begin(); \
		return next_##name(lock, vt_moment(CLOCK_REALTIME, until, &room)); \
	}

WAIT_UNTIL(pthread_mutex_timedlock, pthread_mutex_t)
WAIT_UNTIL(pthread_rwlock_timedrdlock, pthread_rwlock_t)
WAIT_UNTIL(pthread_rwlock_timedwrlock, pthread_rwlock_t)
WAIT_UNTIL(mtx_timedlock, mtx_t)
WAIT_UNTIL(sem_timedwait, sem_t)

/* The waits whose clock is an argument. */
#define WAIT_ON_CLOCK(name, type) \
	EXPORT int name(type *restrict lock, clockid_t clock, const struct timespec *restrict until) \
	{ \
		struct timespec room; \
\
		vt_begin(); \
		return next_##name(lock, clock, vt_moment(clock, until, &room)); \
	}

WAIT_ON_CLOCK(pthread_mutex_clocklock, pthread_mutex_t)
WAIT_ON_CLOCK(pthread_rwlock_clockrdlock, pthread_rwlock_t)
WAIT_ON_CLOCK(pthread_rwlock_clockwrlock, pthread_rwlock_t)
WAIT_ON_CLOCK(sem_clockwait, sem_t)

/* ---- Threads ---- */

EXPORT int pthread_timedjoin_np(pthread_t thread, void **value, const struct timespec *until)
{
	struct timespec room;

	vt_begin();
	return next_pthread_timedjoin_np(thread, value, vt_moment(CLOCK_REALTIME, until, &room));
}

EXPORT int pthread_clockjoin_np(pthread_t thread, void **value, clockid_t clock, const struct timespec *until)
{
	struct timespec room;

	vt_begin();
	return next_pthread_clockjoin_np(thread, value, clock, vt_moment(clock, until, &room));
}
