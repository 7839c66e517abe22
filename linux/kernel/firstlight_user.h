/* SPDX-License-Identifier: GPL-2.0 */
/* What the two halves of the driver call of each other: one is compiled as a part of Linux, one against libc. */
#ifndef FIRSTLIGHT_USER_H
#define FIRSTLIGHT_USER_H

#include "firstlight.h"

/* The user half: the engine, NULL when the command line asks for none. */
extern const struct firstlight_engine *firstlight_engine;

/* One line on the process's standard error, whatever the kernel's log level is. */
void firstlight_say(const char *line);

/* As firstlight_say(), and the end of the process. */
void firstlight_fail(const char *line) __attribute__((noreturn));

/* The kernel half: its side of the interface. */
extern const struct firstlight_host firstlight_host;

/* Writes one line on where the kernel is, with newline; returns its length. Called from a signal handler. */
int firstlight_whereabouts(char *line, unsigned long size);

#endif
