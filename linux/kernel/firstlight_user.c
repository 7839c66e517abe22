// SPDX-License-Identifier: GPL-2.0
/*
 * The half of the driver in the host's process: loads the engine, seeds the kernel's randomness, and reports on a
 * signal what the kernel is doing.
 *
 *   firstlight=<shared object>,<run directory>
 *   firstlight_seed=<number>
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <asm/prctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <init.h>
#include "firstlight_user.h"

/* General protection: what a trapped instruction raises. */
#define TRAP_PROTECTION 13

const struct firstlight_engine *firstlight_engine;

void firstlight_say(const char *line)
{
	fprintf(stderr, "firstlight: %s\n", line);
}

void firstlight_fail(const char *line)
{
	firstlight_say(line);
	_exit(1);
}

static void fail_on(const char *what, const char *why)
{
	char line[1024];

	snprintf(line, sizeof(line), "%s: %s", what, why);
	firstlight_fail(line);
}

/*
 * The kernel traps CPUID and reads of the time-stamp counter as its programs do. To turn the traps on and off at each
 * switch between the two takes time: on a virtual machine 7 us for CPUID, and 0.2 us for the counter.
 */
void firstlight_trap_instructions(void)
{
	static int trapped;

	if (trapped)
		return;
	syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
	trapped = 1;
}

static void carry_out_cpuid(greg_t *regs)
{
	unsigned int a = regs[REG_RAX], b, c = regs[REG_RCX], d;

	syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1);
	asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
	regs[REG_RAX] = a;
	regs[REG_RBX] = b;
	regs[REG_RCX] = c;
	regs[REG_RDX] = d;
	regs[REG_RIP] += 2;
}

static void carry_out_rdtsc(greg_t *regs)
{
	unsigned int a, d;

	prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
	asm volatile("rdtsc" : "=a"(a), "=d"(d));
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
	regs[REG_RAX] = a;
	regs[REG_RDX] = d;
	regs[REG_RIP] += 2;
}

static void carry_out_rdtscp(greg_t *regs)
{
	unsigned int a, c, d;

	prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
	asm volatile("rdtscp" : "=a"(a), "=c"(c), "=d"(d));
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
	regs[REG_RAX] = a;
	regs[REG_RCX] = c;
	regs[REG_RDX] = d;
	regs[REG_RIP] += 3;
}

int firstlight_carries_out(void *context)
{
	greg_t *regs = ((mcontext_t *)context)->gregs;
	const unsigned char *code = (const unsigned char *)regs[REG_RIP];

	if (regs[REG_TRAPNO] != TRAP_PROTECTION || code[0] != 0x0f)
		return 0;
	if (code[1] == 0xa2)
		carry_out_cpuid(regs);
	else if (code[1] == 0x31)
		carry_out_rdtsc(regs);
	else if (code[1] == 0x01 && code[2] == 0xf9)
		carry_out_rdtscp(regs);
	else
		return 0;
	return 1;
}

static void on_report(int signal)
{
	int saved = errno;
	char line[160];
	int length = firstlight_whereabouts(line, sizeof(line));

	(void)signal;
	length = write(STDERR_FILENO, line, length); /* the reader may be gone */
	errno = saved;
}

static void report_on_signal(void)
{
	struct sigaction action = { .sa_handler = on_report, .sa_flags = SA_RESTART | SA_ONSTACK };

	/* No code of the kernel may run during the report. */
	sigfillset(&action.sa_mask);
	if (sigaction(SIGUSR2, &action, NULL))
		fail_on("sigaction", strerror(errno));
}

static int __init open_engine(char *argument, int *add)
{
	char *comma = strrchr(argument, ',');
	firstlight_open_fn open;
	void *object;

	*add = 0;
	if (!comma || comma == argument || !comma[1])
		fail_on("firstlight= needs <shared object>,<run directory>, not", argument);
	*comma = '\0';
	object = dlopen(argument, RTLD_NOW | RTLD_LOCAL);
	if (!object)
		firstlight_fail(dlerror());
	open = (firstlight_open_fn)dlsym(object, FIRSTLIGHT_OPEN);
	if (!open)
		fail_on(argument, "not an engine: the symbol " FIRSTLIGHT_OPEN " is missing");
	firstlight_engine = open(&firstlight_host, comma + 1);
	if (!firstlight_engine)
		fail_on(argument, "the engine cannot do this run");
	if (firstlight_engine->abi != FIRSTLIGHT_ABI) {
		char why[128];

		snprintf(why, sizeof(why), "the engine has version %u of the interface, this kernel %u: build both anew",
			 firstlight_engine->abi, FIRSTLIGHT_ABI);
		fail_on(argument, why);
	}
	report_on_signal();
	return 0;
}
__uml_setup("firstlight=", open_engine,
"firstlight=<shared object>,<run directory>\n"
"    Loads the network engine, which tells how many devices fl0, fl1, ... there are.\n\n");

static int seeded;
static uint64_t seed, state;

static int __init set_seed(char *argument, int *add)
{
	char *end;

	*add = 0;
	state = seed = strtoull(argument, &end, 10);
	if (end == argument || *end)
		fail_on("firstlight_seed= needs a number, not", argument);
	seeded = 1;
	return 0;
}
__uml_setup("firstlight_seed=", set_seed,
"firstlight_seed=<number>\n"
"    What the kernel asks of the host's randomness comes from a generator seeded with this number.\n\n");

void firstlight_reseed(void)
{
	state = seed;
}

/*
 * Replaces libc's function for the kernel's os_getrandom(). SplitMix64 (Steele, Lea, Flood: Fast splittable
 * pseudorandom number generators, OOPSLA 2014, figure 17).
 */
ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
	unsigned char *bytes = buffer;
	uint64_t word = 0;
	size_t i;

	if (!seeded)
		return syscall(SYS_getrandom, buffer, length, flags);
	for (i = 0; i < length; i++) {
		if (i % 8 == 0) {
			word = state += 0x9e3779b97f4a7c15u;
			word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
			word = (word ^ word >> 27) * 0x94d049bb133111ebu;
			word ^= word >> 31;
		}
		bytes[i] = word >> i % 8 * 8;
	}
	return length;
}
