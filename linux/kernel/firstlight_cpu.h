/* SPDX-License-Identifier: GPL-2.0 */
/* Calls from Linux to the processor that programs see. */
#ifndef FIRSTLIGHT_CPU_H
#define FIRSTLIGHT_CPU_H

#include <linux/types.h>

struct seq_file;
struct uml_pt_regs;

/* Carries out a trapped RDTSC, RDTSCP or CPUID of a program. Returns false for any other fault. */
bool firstlight_emulates(struct uml_pt_regs *regs);

/* Writes /proc/cpuinfo. */
int firstlight_show_cpu(struct seq_file *file);

#endif
