/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * LibVT: virtual time for unmodified programs. Each clock reads `start + (real - start) / factor`, and each wait lasts
 * `factor` times as long. README.md says how it is used.
 *
 * Times are signed 64-bit nanoseconds, which end in the year 2262; what lies beyond is taken for that end.
 */
#ifndef LIBVT_VT_H
#define LIBVT_VT_H

#include "calls.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

#define NS_PER_S 1000000000LL
#define NS_PER_MS 1000000LL
#define NS_PER_US 1000LL

/* ---- start.c ---- */

extern bool vt_ready;

/* Reads the environment and finds the functions behind LibVT's own. */
void vt_load(void);

/* Every function of LibVT calls this first: a program may call one before LibVT's constructor has run. */
static inline void vt_begin(void)
{
	if (__builtin_expect(!vt_ready, 0))
		vt_load();
}

/* Strings NAME=VALUE that the environment of a program has to hold so that it runs in the same virtual time. */
#define VT_VARIABLES 3
extern const char *vt_environment[VT_VARIABLES];
/* The file that LibVT was loaded from. */
extern const char *vt_file;

/* ---- clocks.c ---- */

/* How many times slower virtual time runs; 1 where the environment says nothing. */
extern int64_t vt_factor;

/* The clocks that have a start, in the order of LIBVT_START. */
enum { VT_REALTIME, VT_MONOTONIC, VT_RAW, VT_BOOTTIME, VT_TAI, VT_CLOCKS };
extern const clockid_t vt_clocks[VT_CLOCKS];
extern int64_t vt_starts[VT_CLOCKS];

/* A clock's virtual time for the machine's, and back. A processor's time has no start: it is divided. */
int64_t vt_virtual(clockid_t clock, int64_t real);
int64_t vt_real(clockid_t clock, int64_t virtual);

/* A span of virtual time as the machine has to wait for it. */
int64_t vt_stretch(int64_t virtual);
/* A span of the machine's time as the program sees it, rounded up, so that the rest of a wait is not 0. */
int64_t vt_shrink(int64_t real);

/* The product; where that does not fit, the largest number that does. */
int64_t vt_multiply(int64_t value, int64_t by);

int64_t vt_ns(struct timespec time);
int64_t vt_timeval_ns(struct timeval time);
/* From nanoseconds; times before the clock's zero become zero. */
struct timespec vt_timespec(int64_t ns);
struct timeval vt_timeval(int64_t ns);

/* A wait's time-out, or a moment of a clock, in the machine's time, written to `room`. What is not valid or not there
 * comes back as it is, for the C library's own answer. */
const struct timespec *vt_wait(const struct timespec *given, struct timespec *room);
const struct timespec *vt_moment(clockid_t clock, const struct timespec *given, struct timespec *room);
struct timeval *vt_wait_timeval(const struct timeval *given, struct timeval *room);

/* ---- program.c ---- */

/* Why a program would not run in virtual time, as the end of a sentence; NULL when it would. */
const char *vt_refusal(const char *path);

/* Writes to `room` which program runs the script `path`; false when it is none. */
bool vt_interpreter(const char *path, char *room, size_t size);

#endif
