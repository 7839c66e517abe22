// SPDX-License-Identifier: GPL-2.0
/*
 * System calls of programs as notifications of seccomp (firstlight_calls.h), in the kernel's own process.
 *
 * A process waits in one of two places: in the system call of its program, or in its signal handler, which hands over
 * page faults and those calls that need all registers. Either wait is a notification, which the kernel answers.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>
#include <asm/unistd.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <as-layout.h>
#include <kern_util.h>
#include <mm_id.h>
#include <os.h>
#include <ptrace_user.h>
#include <skas.h>
#include <stub-data.h>
#include <sysdep/mcontext.h>
#include <sysdep/ptrace.h>
#include "firstlight_calls.h"

/* From Linux 6.6 on: who waits for a notification runs on the processor of who makes it. */
#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP 1UL
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif

/* The last notification. */
static struct seccomp_notif last;

/* A process that has died has no number (mmu.c). */
static int is_dead(const struct mm_id *mm)
{
	return *(volatile const int *)&mm->pid < 0;
}

static struct stub_data *data_of(const struct mm_id *mm)
{
	return (struct stub_data *)mm->stack;
}

/* Whether the process waits in its signal handler. */
static int is_report(void)
{
	return last.data.instruction_pointer - STUB_CODE < UM_KERN_PAGE_SIZE;
}

void firstlight_calls_init(struct mm_id *mm)
{
	mm->listener = -1;
	mm->partial = NULL;
	data_of(mm)->listener = -1;
	data_of(mm)->notifies = 0;
}

int firstlight_calls_begin(struct mm_id *mm)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec text = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &text,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *first;
	int got;

	if (data_of(mm)->listener < 0)
		return 0;
	CATCH_EINTR(got = recvmsg(mm->sock, &message, MSG_CMSG_CLOEXEC));
	if (got < 0)
		return -errno;
	first = CMSG_FIRSTHDR(&message);
	if (!first || first->cmsg_type != SCM_RIGHTS)
		return -EPROTO;
	memcpy(&mm->listener, CMSG_DATA(first), sizeof(mm->listener));
	/* Older machines wake on any processor. */
	ioctl(mm->listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);

	/* The process waits for a futex, the last time: it reports once more. */
	data_of(mm)->notifies = 1;
	data_of(mm)->restart_wait = 1;
	data_of(mm)->futex = FUTEX_IN_CHILD;
	CATCH_EINTR(syscall(__NR_futex, &data_of(mm)->futex, FUTEX_WAKE, 1, NULL, NULL, 0));
	return firstlight_calls_wait(mm) ? -ECHILD : 0;
}

int firstlight_calls_wait(struct mm_id *mm)
{
	int got;

	do {
		if (is_dead(mm))
			return -1;
		memset(&last, 0, sizeof(last));
		got = ioctl(mm->listener, SECCOMP_IOCTL_NOTIF_RECV, &last);
		/* ENOENT: a signal has ended the call meanwhile. */
	} while (got < 0 && (errno == EINTR || errno == ENOENT));
	if (got < 0)
		return -1;
	mm->call = last.id;
	if (!is_report())
		data_of(mm)->signal = SIGSYS;
	return 0;
}

int firstlight_calls_answer(struct mm_id *mm)
{
	struct seccomp_notif_resp answer = {
		.id = mm->call,
		.val = mm->partial ? REGS_AX(mm->partial->gp) : 0,
	};

	mm->partial = NULL;
	while (ioctl(mm->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) < 0) {
		if (errno == EINTR)
			continue;
		/* A process that was stopped and continued (SIGSTOP, SIGCONT) makes its call anew. */
		if (errno != ENOENT || firstlight_calls_wait(mm))
			return -1;
		answer.id = mm->call;
	}
	return 0;
}

int firstlight_calls_came(struct mm_id *mm, struct uml_pt_regs *regs)
{
	const struct seccomp_data *call = &last.data;

	if (mm->listener < 0 || is_report())
		return 0;
	REGS_IP(regs->gp) = call->instruction_pointer;
	REGS_CX(regs->gp) = call->instruction_pointer;
	REGS_AX(regs->gp) = call->nr;
	PT_SYSCALL_NR(regs->gp) = call->nr;
	REGS_DI(regs->gp) = call->args[0];
	REGS_SI(regs->gp) = call->args[1];
	REGS_DX(regs->gp) = call->args[2];
	REGS_R10(regs->gp) = call->args[3];
	REGS_R8(regs->gp) = call->args[4];
	REGS_R9(regs->gp) = call->args[5];
	mm->partial = regs;
	return 1;
}

int firstlight_calls_go_on(struct mm_id *mm, struct uml_pt_regs *regs, int single_step)
{
	if (mm->partial == regs && !mm->syscall_data_len && !single_step)
		return 1;
	firstlight_calls_fetch(mm);
	return 0;
}

/* A signal moves the process from its call into its signal handler, which stores the registers. */
void firstlight_calls_fetch(struct mm_id *mm)
{
	struct uml_pt_regs *regs = mm->partial;
	unsigned long result;

	if (!regs)
		return;
	mm->partial = NULL;
	result = REGS_AX(regs->gp);
	kill(mm->pid, SIGALRM);
	do {
		if (firstlight_calls_wait(mm))
			return; /* The next wait for the process says that it has died. */
	} while (!is_report());
	if (get_stub_state(regs, data_of(mm), NULL))
		panic("firstlight: the registers of process %d cannot be read", mm->pid);
	REGS_AX(regs->gp) = result;
}
