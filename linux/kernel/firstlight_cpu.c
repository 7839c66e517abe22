// SPDX-License-Identifier: GPL-2.0
/*
 * The processor that programs see: a time-stamp counter of virtual time, and the same /proc/cpuinfo on every machine.
 *
 * The processes of programs ask the machine to trap RDTSC and RDTSCP (stub_exe.c). Each trap is a fault that
 * segv_handler() brings here.
 */
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <sysdep/ptrace.h>
#include "firstlight_cpu.h"

/* General protection: what a trapped instruction raises. */
#define TRAP_PROTECTION 13

/* The counter counts nanoseconds since the boot. Reading it takes as much virtual time as reading a clock. */
static void answer_counter(struct uml_pt_regs *regs)
{
	u64 now = ktime_get_ns();

	UPT_AX(regs) = (u32)now;
	UPT_DX(regs) = now >> 32;
}

bool firstlight_emulates(struct uml_pt_regs *regs)
{
	u8 code[3] = { 0 };
	unsigned int length = 2;

	if (UPT_FAULTINFO(regs)->trap_no != TRAP_PROTECTION ||
	    copy_from_user(code, (void __user *)UPT_IP(regs), 2) || code[0] != 0x0f)
		return false;
	switch (code[1]) {
	case 0x31:
		answer_counter(regs);
		break;
	case 0x01:
		if (get_user(code[2], (u8 __user *)UPT_IP(regs) + 2) || code[2] != 0xf9)
			return false;
		answer_counter(regs);
		UPT_CX(regs) = 0; /* the number of the processor */
		length = 3;
		break;
	default:
		return false;
	}
	UPT_IP(regs) += length;
	return true;
}

int firstlight_show_cpu(struct seq_file *file)
{
	seq_puts(file, "processor\t: 0\n"
		       "vendor_id\t: User Mode Linux\n"
		       "model name\t: Firstlight\n"
		       "cpu MHz\t\t: 1000.000\n"
		       "siblings\t: 1\n"
		       "cpu cores\t: 1\n"
		       "fpu\t\t: yes\n"
		       "flags\t\t: fpu tsc cx8 cmov mmx fxsr sse sse2 syscall rdtscp lm\n"
		       "cache_alignment\t: 64\n"
		       "bogomips\t: 2000.00\n\n");
	return 0;
}
