/* SPDX-License-Identifier: GPL-2.0 */
/* Calls between the two halves of the driver: one is compiled as a part of Linux, the other against libc. */
#ifndef FIRSTLIGHT_USER_H
#define FIRSTLIGHT_USER_H

#include "firstlight.h"

/* The user half: the engine; NULL when the command line names none. */
extern const struct firstlight_engine *firstlight_engine;

/* Writes one line to the process's standard error, at any log level of the kernel. */
void firstlight_say(const char *line);

/* Writes a line like firstlight_say() and ends the process. */
void firstlight_fail(const char *line) __attribute__((noreturn));

/* Begins the machine's randomness, as the kernel sees it, anew from the run's seed. */
void firstlight_reseed(void);

/* Lets this process trap CPUID, if the machine can, and reads of the time-stamp counter. */
void firstlight_trap_instructions(void);

/* Carries out such an instruction, which has trapped with the registers of a signal. Returns 0 for any other fault. */
int firstlight_carries_out(void *context);

/* The kernel half: its functions for the engine. */
extern const struct firstlight_host firstlight_host;

/* Writes what the kernel is doing as one line with newline, and returns its length. Called in a signal handler. */
int firstlight_whereabouts(char *line, unsigned long size);

#endif
