/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Programs that LibVT cannot stand before. The loader of glibc puts it there (ld.so(8), LD_PRELOAD); a program that is
 * not started by that loader, or does not ask the C library for the time, would see the machine's.
 *
 * What is here runs between vfork() and execve(): no memory is taken, nothing is locked.
 */
#define _GNU_SOURCE
#include "vt.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define MAX_HEADERS 64
#define MAX_NOTES 4096
/* The note of Go's linker: the name of its owner, and its kind. */
#define GO_OWNER "Go\0"
#define GO_BUILD_ID 4

#if __SIZEOF_POINTER__ == 8
#define OWN_CLASS ELFCLASS64
#else
#define OWN_CLASS ELFCLASS32
#endif

static const char static_program[] =
	"is linked statically, so that LibVT cannot stand before its C library and it would see undilated time: "
	"link it dynamically with glibc, or run it on Linux hosts in virtual time (hosts.kind = \"linux\")";
static const char go_program[] =
	"is a Go program, which reads clocks and sleeps without the C library and would see undilated time: "
	"run it on Linux hosts in virtual time (hosts.kind = \"linux\")";
static const char other_library[] =
	"is linked with another C library than glibc, whose loader cannot load LibVT: link it with glibc";
static const char other_width[] =
	"has another word size than LibVT, which the loader would leave out: build it for the machine's own word size";
static const char set_id[] =
	"gets other rights when it starts (set-user-ID, set-group-ID or capabilities), for which the loader leaves LibVT "
	"out: use a copy of it without them";

/* Whether the kernel gives this program other rights than its caller's: the loader then ignores LD_PRELOAD. */
static bool gains_rights(int file)
{
	struct stat status;

	if (fstat(file, &status))
		return false;
	if (status.st_mode & S_ISUID && status.st_uid != geteuid())
		return true;
	if (status.st_mode & S_ISGID && status.st_mode & S_IXGRP && status.st_gid != getegid())
		return true;
	return geteuid() != 0 && fgetxattr(file, "security.capability", NULL, 0) > 0;
}

static bool has_go_note(int file, const ElfW(Phdr) *segment)
{
	char notes[MAX_NOTES];
	size_t size = segment->p_filesz < sizeof(notes) ? segment->p_filesz : sizeof(notes);
	ssize_t length = pread(file, notes, size, segment->p_offset);

	for (ssize_t at = 0; at + (ssize_t)sizeof(ElfW(Nhdr)) <= length;) {
		ElfW(Nhdr) note;
		size_t owner, content;

		memcpy(&note, notes + at, sizeof(note));
		at += sizeof(note);
		owner = (note.n_namesz + 3) & ~3u;
		content = (note.n_descsz + 3) & ~3u;
		if (owner + content > (size_t)(length - at))
			return false;
		if (note.n_type == GO_BUILD_ID && note.n_namesz == sizeof(GO_OWNER) &&
		    !memcmp(notes + at, GO_OWNER, sizeof(GO_OWNER)))
			return true;
		at += owner + content;
	}
	return false;
}

static bool is_named_as_loader(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return !strncmp(name, "ld-linux", strlen("ld-linux")) || !strncmp(name, "ld.so", strlen("ld.so")) ||
	       !strncmp(name, "ld64.so", strlen("ld64.so"));
}

/* Whether the program's loader is glibc's. */
static bool has_own_loader(int file, const ElfW(Phdr) *segment)
{
	char path[256] = "";
	size_t size = segment->p_filesz < sizeof(path) - 1 ? segment->p_filesz : sizeof(path) - 1;

	return pread(file, path, size, segment->p_offset) > 0 && is_named_as_loader(path);
}

static const char *refusal_of(int file, const char *path, const ElfW(Ehdr) *header)
{
	const char *problem = is_named_as_loader(path) ? NULL : static_program;

	for (int i = 0; i < header->e_phnum && i < MAX_HEADERS; i++) {
		ElfW(Phdr) segment;

		if (pread(file, &segment, sizeof(segment), header->e_phoff + i * header->e_phentsize) != sizeof(segment))
			return NULL; /* the kernel will say what is wrong with it */
		if (segment.p_type == PT_NOTE && has_go_note(file, &segment))
			return go_program;
		if (segment.p_type == PT_INTERP)
			problem = has_own_loader(file, &segment) ? NULL : other_library;
	}
	return problem;
}

const char *vt_refusal(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	const char *problem = NULL;
	ElfW(Ehdr) header;

	if (file < 0)
		return NULL;
	if (pread(file, &header, sizeof(header), 0) == sizeof(header) && !memcmp(header.e_ident, ELFMAG, SELFMAG)) {
		if (header.e_ident[EI_CLASS] != OWN_CLASS)
			problem = other_width;
		else if (gains_rights(file))
			problem = set_id;
		else
			problem = refusal_of(file, path, &header);
	}
	close(file);
	return problem;
}

bool vt_interpreter(const char *path, char *room, size_t size)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	char line[256];
	ssize_t length;
	char *begin, *end;

	if (file < 0)
		return false;
	length = pread(file, line, sizeof(line) - 1, 0);
	close(file);
	if (length < 2 || line[0] != '#' || line[1] != '!')
		return false;
	line[length] = '\0';
	begin = line + 2 + strspn(line + 2, " \t");
	end = begin + strcspn(begin, " \t\n");
	*end = '\0';
	if (!*begin || (size_t)(end - begin) >= size)
		return false;
	strcpy(room, begin);
	return true;
}
