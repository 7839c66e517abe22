/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The settings in the environment, and the C library's functions behind LibVT's own.
 *
 *   LIBVT_TDF=20            how many times slower virtual time runs: 1 to 1000000
 *   LIBVT_START=A:B:C:D:E   when it began, in nanoseconds of CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW,
 *                           CLOCK_BOOTTIME and CLOCK_TAI; without it now, for the program and all that it starts
 */
#define _GNU_SOURCE
#include "vt.h"

#include <dlfcn.h>
#include <string.h>

#define LARGEST_FACTOR 1000000
/* Room for a variable of ours: a name and five numbers. */
#define VARIABLE 160

#define DEFINE_NEXT(name) __typeof__(name) *next_##name;
CALLS(DEFINE_NEXT)
#undef DEFINE_NEXT

bool vt_ready;
const char *vt_environment[VT_VARIABLES];
const char *vt_file = "libvt.so";

/* Functions of which the C library keeps older versions, with other structures: dlsym() may find those. */
static const struct {
	const char *name, *version;
	void *next;
} versioned[] = {
	{ "pthread_cond_timedwait", "GLIBC_2.3.2", &next_pthread_cond_timedwait },
	{ "posix_spawn", "GLIBC_2.15", &next_posix_spawn },
	{ "posix_spawnp", "GLIBC_2.15", &next_posix_spawnp },
	{ "timer_create", "GLIBC_2.3.3", &next_timer_create },
	{ "timer_delete", "GLIBC_2.3.3", &next_timer_delete },
	{ "timer_settime", "GLIBC_2.3.3", &next_timer_settime },
	{ "timer_gettime", "GLIBC_2.3.3", &next_timer_gettime },
};

static bool are_in_one_file(const void *one, const void *other)
{
	Dl_info places[2];

	return dladdr(one, &places[0]) && dladdr(other, &places[1]) && places[0].dli_fbase == places[1].dli_fbase;
}

static void find_next(void)
{
#define FIND(name) next_##name = (__typeof__(next_##name))dlsym(RTLD_NEXT, #name);
	CALLS(FIND)
#undef FIND
	for (size_t i = 0; i < sizeof(versioned) / sizeof(*versioned); i++) {
		void *newer = dlvsym(RTLD_NEXT, versioned[i].name, versioned[i].version), *found;

		memcpy(&found, versioned[i].next, sizeof(found));
		if (newer && are_in_one_file(newer, found))
			memcpy(versioned[i].next, &newer, sizeof(newer));
	}
}

/* A program whose time would be wrong does not run. */
static void fail(const char *name, const char *value, const char *wanted)
{
	dprintf(STDERR_FILENO, "libvt: %s=%s: %s\n", name, value, wanted);
	_exit(125);
}

/* The number that `text` begins with, up to `end`; false when there is none. */
static bool number(const char **text, char end, int64_t *value)
{
	char *rest;

	errno = 0;
	*value = strtoll(*text, &rest, 10);
	if (rest == *text || *rest != end || errno || *value < 0)
		return false;
	*text = rest + 1;
	return true;
}

static void read_factor(const char *text)
{
	const char *rest = text;

	if (!number(&rest, '\0', &vt_factor) || vt_factor < 1 || vt_factor > LARGEST_FACTOR)
		fail("LIBVT_TDF", text, "write a whole number from 1 to 1000000, such as 20");
}

static void read_starts(const char *text)
{
	const char *rest = text;

	for (int i = 0; i < VT_CLOCKS; i++)
		if (!number(&rest, i + 1 < VT_CLOCKS ? ':' : '\0', &vt_starts[i]))
			fail("LIBVT_START", text, "write five numbers of nanoseconds with colons between them, or leave it out");
}

static void start_now(void)
{
	for (int i = 0; i < VT_CLOCKS; i++) {
		struct timespec now = { 0 };

		next_clock_gettime(vt_clocks[i], &now);
		vt_starts[i] = vt_ns(now);
	}
}

/* Keeps the variables that programs started by this one need, and sets them in this program's own environment too. */
static void keep_environment(void)
{
	static char factor[VARIABLE], starts[VARIABLE];
	const char *preload = getenv("LD_PRELOAD");
	char *text;
	Dl_info own;

	if (dladdr(&vt_ready, &own) && own.dli_fname)
		vt_file = strdup(own.dli_fname);
	if (asprintf(&text, "LD_PRELOAD=%s", preload && *preload ? preload : vt_file) < 0)
		fail("LD_PRELOAD", preload, "there is no memory to copy it");
	snprintf(factor, sizeof(factor), "LIBVT_TDF=%lld", (long long)vt_factor);
	snprintf(starts, sizeof(starts), "LIBVT_START=%lld:%lld:%lld:%lld:%lld", (long long)vt_starts[VT_REALTIME],
		 (long long)vt_starts[VT_MONOTONIC], (long long)vt_starts[VT_RAW], (long long)vt_starts[VT_BOOTTIME],
		 (long long)vt_starts[VT_TAI]);
	setenv("LIBVT_START", strchr(starts, '=') + 1, 1);
	vt_environment[0] = text;
	vt_environment[1] = factor;
	vt_environment[2] = starts;
}

void vt_load(void)
{
	const char *factor = getenv("LIBVT_TDF"), *starts = getenv("LIBVT_START");

	find_next();
	vt_ready = true;
	if (!factor)
		return;
	read_factor(factor);
	if (starts)
		read_starts(starts);
	else
		start_now();
	keep_environment();
}

__attribute__((constructor(101))) static void construct(void)
{
	vt_begin();
}
