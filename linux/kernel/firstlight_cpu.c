// SPDX-License-Identifier: GPL-2.0
/*
 * The processor that programs see: a time-stamp counter of virtual time, and the same CPUID and /proc/cpuinfo on every
 * machine.
 *
 * The processes of programs ask the machine to trap RDTSC, RDTSCP and CPUID (stub_exe.c). Each trap is a fault that
 * segv_handler() brings here. A machine that cannot trap CPUID carries it out.
 */
#include <linux/kernel.h>
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

/* What CPUID answers. */
struct leaf {
	u32 number, ax, bx, cx, dx;
};

/*
 * A processor of the level x86-64-v2 and no more (System V ABI): SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT and
 * LAHF beside what x86-64 demands. No random numbers, AVX, or XSAVE. Its counter never stops. The maker is one that
 * glibc knows: of others it believes nothing. The caches are of 32 kB, 512 kB and 8 MB.
 */
static const struct leaf leaves[] = {
	{ 0x00000000, 7, 0x68747541, 0x444d4163, 0x69746e65 },
	{ 0x00000001, 0x00000f00, 0x00010800, 0x00982201, 0x078bfbff },
	{ 0x80000000, 0x80000008, 0, 0, 0 },
	{ 0x80000001, 0, 0, 0x00000001, 0x28100800 },
	{ 0x80000002, 0x73726946, 0x67696c74, 0x00007468, 0 }, /* "Firstlight" */
	{ 0x80000005, 0, 0, 0x20080140, 0x20080140 },
	{ 0x80000006, 0, 0, 0x02006040, 0x00408140 },
	{ 0x80000007, 0, 0, 0, 0x00000100 },
	{ 0x80000008, 0x00003030, 0, 0, 0 },
};

static void answer_cpuid(struct uml_pt_regs *regs)
{
	struct leaf found = { 0 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(leaves); i++)
		if (leaves[i].number == (u32)UPT_AX(regs))
			found = leaves[i];
	UPT_AX(regs) = found.ax;
	UPT_BX(regs) = found.bx;
	UPT_CX(regs) = found.cx;
	UPT_DX(regs) = found.dx;
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
	case 0xa2:
		answer_cpuid(regs);
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
		       "flags\t\t: fpu tsc cx8 cmov mmx fxsr sse sse2 pni ssse3 cx16 sse4_1 "
		       "sse4_2 popcnt syscall nx rdtscp lm constant_tsc nonstop_tsc lahf_lm\n"
		       "cache_alignment\t: 64\n"
		       "bogomips\t: 2000.00\n\n");
	return 0;
}
