/* SPDX-License-Identifier: GPL-2.0 */
/*
 * System calls of programs as notifications of seccomp: the kernel reads a call's number and arguments and answers it,
 * without a signal in the program's process. The other registers stay in that process, and are fetched if needed.
 */
#ifndef FIRSTLIGHT_CALLS_H
#define FIRSTLIGHT_CALLS_H

/* By this call the stub of a process hands control to the kernel, and waits in it. */
#define FIRSTLIGHT_REPORTS __NR_pause

#ifndef __ASSEMBLY__

struct mm_id;
struct uml_pt_regs;

/* A new process has no notifications before it has begun. */
void firstlight_calls_init(struct mm_id *mm);

/* Takes the file descriptor from which the kernel receives notifications, if the process has one. 0 or -errno. */
int firstlight_calls_begin(struct mm_id *mm);

/* Waits until the process hands control to the kernel. Returns 0, or -1 if it has died. */
int firstlight_calls_wait(struct mm_id *mm);

/* Lets the process go on. Returns 0, or -1 if it has died. */
int firstlight_calls_answer(struct mm_id *mm);

/* Whether the process has made a system call by notification; stores its registers so far as they are known. */
int firstlight_calls_came(struct mm_id *mm, struct uml_pt_regs *regs);

/* Whether the thread with these registers needs no more than the result of its call; if not, fetches all registers. */
int firstlight_calls_go_on(struct mm_id *mm, struct uml_pt_regs *regs, int single_step);

/* Fetches the registers that are still in the process. */
void firstlight_calls_fetch(struct mm_id *mm);

#endif
#endif
