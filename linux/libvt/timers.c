/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The calls that set timers and that read the time left. */
#define _GNU_SOURCE
#include "vt.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>

/* ---- Interval timers ---- */

static struct itimerval stretched(const struct itimerval *timer)
{
	struct itimerval real;

	vt_wait_timeval(&timer->it_interval, &real.it_interval);
	vt_wait_timeval(&timer->it_value, &real.it_value);
	return real;
}

/* The time left in whole microseconds, at least 1 unless nothing is left. */
static struct timeval left_of(struct timeval real)
{
	return vt_timeval(vt_shrink(vt_timeval_ns(real)) + (NS_PER_US - 1));
}

static void shrink(struct itimerval *timer)
{
	timer->it_interval = left_of(timer->it_interval);
	timer->it_value = left_of(timer->it_value);
}

EXPORT int setitimer(__itimer_which_t which, const struct itimerval *timer, struct itimerval *before)
{
	struct itimerval real;
	int result;

	vt_begin();
	if (timer)
		real = stretched(timer);
	result = next_setitimer(which, timer ? &real : NULL, before);
	if (!result && before)
		shrink(before);
	return result;
}

EXPORT int getitimer(__itimer_which_t which, struct itimerval *timer)
{
	int result;

	vt_begin();
	result = next_getitimer(which, timer);
	if (!result)
		shrink(timer);
	return result;
}

/* Whole seconds, the nearest, but no 0 for something. */
EXPORT unsigned int alarm(unsigned int seconds)
{
	struct itimerval timer = { .it_value = { .tv_sec = seconds } }, before;

	if (setitimer(ITIMER_REAL, &timer, &before))
		return 0;
	if (!before.it_value.tv_sec)
		return before.it_value.tv_usec > 0;
	return before.it_value.tv_sec + (before.it_value.tv_usec >= 500000);
}

EXPORT useconds_t ualarm(useconds_t first, useconds_t interval)
{
	struct itimerval timer = {
		.it_value = vt_timeval(first * NS_PER_US), .it_interval = vt_timeval(interval * NS_PER_US),
	};
	struct itimerval before;

	if (setitimer(ITIMER_REAL, &timer, &before))
		return -1;
	return before.it_value.tv_sec * 1000000 + before.it_value.tv_usec;
}

/* ---- Timers of clocks ---- */

/* `timer` for the machine, set to a moment of `clock` or to a span. */
static const struct itimerspec *real_timer(const struct itimerspec *timer, bool moment, clockid_t clock,
					   struct itimerspec *room)
{
	bool off;

	if (!timer)
		return NULL;
	off = !timer->it_value.tv_sec && !timer->it_value.tv_nsec;
	*room = *timer;
	vt_wait(&timer->it_interval, &room->it_interval);
	if (moment && !off)
		vt_moment(clock, &timer->it_value, &room->it_value);
	else
		vt_wait(&timer->it_value, &room->it_value);
	/* A moment long ago is one that has passed, and not a timer that is switched off. */
	if (!off && !room->it_value.tv_sec && !room->it_value.tv_nsec)
		room->it_value.tv_nsec = 1;
	return room;
}

static void shrink_timer(struct itimerspec *timer)
{
	timer->it_interval = vt_timespec(vt_shrink(vt_ns(timer->it_interval)));
	timer->it_value = vt_timespec(vt_shrink(vt_ns(timer->it_value)));
}

/* The clock of each timer of timer_create(), for timers that are set to a moment. Signal handlers may read it. */
#define PLACES 4096
static struct {
	_Atomic(timer_t) timer;
	_Atomic(clockid_t) clock;
	atomic_bool taken;
} places[PLACES];

static void remember(timer_t timer, clockid_t clock)
{
	for (int i = 0; i < PLACES; i++) {
		if (atomic_exchange(&places[i].taken, true))
			continue;
		places[i].clock = clock;
		places[i].timer = timer;
		return;
	}
}

/* The place of a timer; -1 for one beyond the most. */
static int place_of(timer_t timer)
{
	for (int i = 0; i < PLACES; i++)
		if (places[i].taken && places[i].timer == timer)
			return i;
	return -1;
}

EXPORT int timer_create(clockid_t clock, struct sigevent *event, timer_t *timer)
{
	int result;

	vt_begin();
	result = next_timer_create(clock, event, timer);
	if (!result)
		remember(*timer, clock);
	return result;
}

EXPORT int timer_delete(timer_t timer)
{
	int place = place_of(timer);

	vt_begin();
	if (place >= 0)
		places[place].taken = false;
	return next_timer_delete(timer);
}

EXPORT int timer_settime(timer_t timer, int flags, const struct itimerspec *value, struct itimerspec *before)
{
	bool moment = flags & TIMER_ABSTIME;
	int place = moment ? place_of(timer) : -1, result;
	struct itimerspec room;

	vt_begin();
	value = real_timer(value, moment, place >= 0 ? places[place].clock : CLOCK_MONOTONIC, &room);
	result = next_timer_settime(timer, flags, value, before);
	if (!result && before)
		shrink_timer(before);
	return result;
}

EXPORT int timer_gettime(timer_t timer, struct itimerspec *value)
{
	int result;

	vt_begin();
	result = next_timer_gettime(timer, value);
	if (!result)
		shrink_timer(value);
	return result;
}

/* ---- Timers that are files ---- */

/* The clock of a timer file, which may be inherited or a copy: the kernel knows it. */
static clockid_t clock_of_file(int file)
{
	char path[64], text[512], *found;
	int info;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", file);
	info = open(path, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return CLOCK_MONOTONIC;
	length = read(info, text, sizeof(text) - 1);
	close(info);
	text[length > 0 ? length : 0] = '\0';
	found = strstr(text, "clockid: ");
	return found ? atoi(found + strlen("clockid: ")) : CLOCK_MONOTONIC;
}

EXPORT int timerfd_settime(int file, int flags, const struct itimerspec *value, struct itimerspec *before)
{
	bool moment = flags & TFD_TIMER_ABSTIME;
	struct itimerspec room;
	int result;

	vt_begin();
	value = real_timer(value, moment, moment ? clock_of_file(file) : CLOCK_MONOTONIC, &room);
	result = next_timerfd_settime(file, flags, value, before);
	if (!result && before)
		shrink_timer(before);
	return result;
}

EXPORT int timerfd_gettime(int file, struct itimerspec *value)
{
	int result;

	vt_begin();
	result = next_timerfd_gettime(file, value);
	if (!result)
		shrink_timer(value);
	return result;
}
