/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The arithmetic of virtual time, and the calls that read clocks. */
#define _GNU_SOURCE
#include "vt.h"

int64_t vt_factor = 1;

const clockid_t vt_clocks[VT_CLOCKS] = {
	[VT_REALTIME] = CLOCK_REALTIME, [VT_MONOTONIC] = CLOCK_MONOTONIC, [VT_RAW] = CLOCK_MONOTONIC_RAW,
	[VT_BOOTTIME] = CLOCK_BOOTTIME, [VT_TAI] = CLOCK_TAI,
};
int64_t vt_starts[VT_CLOCKS];

/* ---- Arithmetic ---- */

int64_t vt_multiply(int64_t value, int64_t by)
{
	int64_t product;

	if (!__builtin_mul_overflow(value, by, &product))
		return product;
	return (value < 0) == (by < 0) ? INT64_MAX : INT64_MIN;
}

static int64_t add(int64_t a, int64_t b)
{
	int64_t sum;

	if (!__builtin_add_overflow(a, b, &sum))
		return sum;
	return a < 0 ? INT64_MIN : INT64_MAX;
}

/* Rounded down, for times before the start too. */
static int64_t divide(int64_t value)
{
	return value / vt_factor - (value % vt_factor < 0);
}

/* Which of the clocks with a start this one is; -1 for none of them. */
static int index_of(clockid_t clock)
{
	switch (clock) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
	case CLOCK_REALTIME_ALARM:
		return VT_REALTIME;
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_COARSE:
		return VT_MONOTONIC;
	case CLOCK_MONOTONIC_RAW:
		return VT_RAW;
	case CLOCK_BOOTTIME:
	case CLOCK_BOOTTIME_ALARM:
		return VT_BOOTTIME;
	case CLOCK_TAI:
		return VT_TAI;
	default:
		return -1;
	}
}

/* The low bits of a clock of a process or a thread say which; 3 is a device's clock (PTP), which is left alone. */
static bool is_processor_time(clockid_t clock)
{
	return clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID || (clock < 0 && (clock & 3) != 3);
}

int64_t vt_virtual(clockid_t clock, int64_t real)
{
	int index = index_of(clock);

	if (index >= 0)
		return vt_starts[index] + divide(real - vt_starts[index]);
	return is_processor_time(clock) ? divide(real) : real;
}

int64_t vt_real(clockid_t clock, int64_t virtual)
{
	int index = index_of(clock);

	if (index >= 0)
		return add(vt_starts[index], vt_multiply(virtual - vt_starts[index], vt_factor));
	return is_processor_time(clock) ? vt_stretch(virtual) : virtual;
}

int64_t vt_stretch(int64_t virtual)
{
	return vt_multiply(virtual, vt_factor);
}

int64_t vt_shrink(int64_t real)
{
	return real / vt_factor + (real % vt_factor > 0);
}

int64_t vt_ns(struct timespec time)
{
	return add(vt_multiply(time.tv_sec, NS_PER_S), time.tv_nsec);
}

int64_t vt_timeval_ns(struct timeval time)
{
	return add(vt_multiply(time.tv_sec, NS_PER_S), time.tv_usec * NS_PER_US);
}

struct timespec vt_timespec(int64_t ns)
{
	ns = ns < 0 ? 0 : ns;
	return (struct timespec){ .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };
}

struct timeval vt_timeval(int64_t ns)
{
	ns = ns < 0 ? 0 : ns;
	return (struct timeval){ .tv_sec = ns / NS_PER_S, .tv_usec = ns % NS_PER_S / NS_PER_US };
}

static bool is_valid(const struct timespec *time)
{
	return time && time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < NS_PER_S;
}

const struct timespec *vt_wait(const struct timespec *given, struct timespec *room)
{
	if (!is_valid(given))
		return given;
	*room = vt_timespec(vt_stretch(vt_ns(*given)));
	return room;
}

const struct timespec *vt_moment(clockid_t clock, const struct timespec *given, struct timespec *room)
{
	if (!is_valid(given))
		return given;
	*room = vt_timespec(vt_real(clock, vt_ns(*given)));
	return room;
}

struct timeval *vt_wait_timeval(const struct timeval *given, struct timeval *room)
{
	if (given && given->tv_sec >= 0 && given->tv_usec >= 0 && given->tv_usec < 1000000)
		*room = vt_timeval(vt_stretch(vt_timeval_ns(*given)));
	else if (given)
		*room = *given;
	return given ? room : NULL;
}

/* ---- Calls ---- */

EXPORT int clock_gettime(clockid_t clock, struct timespec *now)
{
	int result;

	vt_begin();
	result = next_clock_gettime(clock, now);
	if (!result)
		*now = vt_timespec(vt_virtual(clock, vt_ns(*now)));
	return result;
}

EXPORT int gettimeofday(struct timeval *now, void *zone)
{
	struct timeval *volatile place = now; /* may be NULL, whatever the header says */
	struct timeval machine;
	struct timespec virtual;
	int result = 0;

	vt_begin();
	if (zone)
		result = next_gettimeofday(&machine, zone);
	if (!result && place) {
		result = clock_gettime(CLOCK_REALTIME, &virtual);
		*place = vt_timeval(vt_ns(virtual));
	}
	return result;
}

EXPORT time_t time(time_t *now)
{
	struct timespec virtual = { 0 };

	if (clock_gettime(CLOCK_REALTIME, &virtual))
		virtual.tv_sec = -1;
	if (now)
		*now = virtual.tv_sec;
	return virtual.tv_sec;
}

EXPORT int timespec_get(struct timespec *now, int base)
{
	int result;

	vt_begin();
	result = next_timespec_get(now, base);
	if (result == TIME_UTC)
		*now = vt_timespec(vt_virtual(CLOCK_REALTIME, vt_ns(*now)));
	return result;
}

EXPORT clock_t clock(void)
{
	clock_t used;

	vt_begin();
	used = next_clock();
	return used == (clock_t)-1 ? used : used / vt_factor;
}

/* In ticks, of a clock that began before the machine did. */
EXPORT clock_t times(struct tms *used)
{
	struct timespec now = { 0 };

	vt_begin();
	if (next_times(used) == (clock_t)-1 && errno == EFAULT)
		return -1;
	if (used) {
		used->tms_utime /= vt_factor;
		used->tms_stime /= vt_factor;
		used->tms_cutime /= vt_factor;
		used->tms_cstime /= vt_factor;
	}
	clock_gettime(CLOCK_BOOTTIME, &now);
	return vt_ns(now) / (NS_PER_S / sysconf(_SC_CLK_TCK));
}

/* Time of processors is a part of the time that passes: both shrink alike. */
static void shrink_usage(struct rusage *usage)
{
	usage->ru_utime = vt_timeval(vt_timeval_ns(usage->ru_utime) / vt_factor);
	usage->ru_stime = vt_timeval(vt_timeval_ns(usage->ru_stime) / vt_factor);
}

EXPORT int getrusage(__rusage_who_t who, struct rusage *usage)
{
	int result;

	vt_begin();
	result = next_getrusage(who, usage);
	if (!result)
		shrink_usage(usage);
	return result;
}

EXPORT pid_t wait3(int *status, int options, struct rusage *usage)
{
	pid_t child;

	vt_begin();
	child = next_wait3(status, options, usage);
	if (child > 0 && usage)
		shrink_usage(usage);
	return child;
}

EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	pid_t child;

	vt_begin();
	child = next_wait4(pid, status, options, usage);
	if (child > 0 && usage)
		shrink_usage(usage);
	return child;
}

EXPORT int sysinfo(struct sysinfo *info)
{
	int result;

	vt_begin();
	result = next_sysinfo(info);
	if (!result)
		info->uptime = vt_virtual(CLOCK_BOOTTIME, vt_multiply(info->uptime, NS_PER_S)) / NS_PER_S;
	return result;
}

/* The machine's clock is not the program's to set. */
static int refuse_to_set(void)
{
	errno = EPERM;
	return -1;
}

EXPORT int clock_settime(clockid_t clock, const struct timespec *time)
{
	vt_begin();
	return vt_factor == 1 ? next_clock_settime(clock, time) : refuse_to_set();
}

EXPORT int settimeofday(const struct timeval *time, const struct timezone *zone)
{
	vt_begin();
	return vt_factor == 1 ? next_settimeofday(time, zone) : refuse_to_set();
}

EXPORT int adjtime(const struct timeval *delta, struct timeval *left)
{
	vt_begin();
	return vt_factor == 1 || !delta ? next_adjtime(delta, left) : refuse_to_set();
}
