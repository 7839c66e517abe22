// SPDX-License-Identifier: GPL-2.0
/*
 * Gives this machine's kernel the congestion control of a BPF object for as long as this process lives. "ready" on
 * standard output says that it is there; the end of standard input ends the process.
 *
 *   hold retcp.o
 *
 * Kernel 6.4 or newer (links of struct_ops).
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Younger than some headers and libraries that this is built with. */
#define LINKED (1U << 13) /* BPF_F_LINK */
#define STRUCT_OPS 44 /* BPF_STRUCT_OPS */

static int fail(const char *what)
{
	fprintf(stderr, "hold: %s: %s\n", what, strerror(errno));
	return 1;
}

static int quiet(enum libbpf_print_level level, const char *format, va_list arguments)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, arguments) : 0;
}

/* libbpf before 1.2 fills the structure in and leaves the link to us. */
static int link_of(const struct bpf_map *map)
{
	union bpf_attr attributes = { 0 };

	attributes.link_create.prog_fd = bpf_map__fd(map);
	attributes.link_create.attach_type = STRUCT_OPS;
	return syscall(SYS_bpf, BPF_LINK_CREATE, &attributes, sizeof(attributes));
}

int main(int count, char **words)
{
	struct bpf_object *object;
	struct bpf_map *map;
	char byte;

	if (count != 2)
		return 2;
	libbpf_set_print(quiet);
	object = bpf_object__open_file(words[1], NULL);
	if (!object)
		return fail(words[1]);
	map = bpf_object__next_map(object, NULL);
	while (map && bpf_map__type(map) != BPF_MAP_TYPE_STRUCT_OPS)
		map = bpf_object__next_map(object, map);
	if (!map) {
		fprintf(stderr, "hold: %s: has no congestion control\n", words[1]);
		return 1;
	}
	bpf_map__set_map_flags(map, bpf_map__map_flags(map) | LINKED);
	if (bpf_object__load(object))
		return fail("the kernel does not take the program");
	if (!bpf_map__attach_struct_ops(map))
		return fail("the kernel does not take the congestion control");
	if (libbpf_major_version() == 1 && libbpf_minor_version() < 2 && link_of(map) < 0)
		return fail("the kernel does not register the congestion control (is there another one of that name?)");
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
