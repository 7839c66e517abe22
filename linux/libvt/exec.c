/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Programs that a program starts: each is checked, and its environment gets back what it lacks. So `env -i` and
 * `sudo` do not lead out of virtual time.
 *
 * Most of it runs between vfork() and execve(): no memory is taken, nothing is locked.
 */
#define _GNU_SOURCE
#include "vt.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#define PRELOAD "LD_PRELOAD="
#define DEFAULT_PATH "/bin:/usr/bin"
/* The kernel follows so many interpreters of interpreters. */
#define MAX_SCRIPTS 4

/* ---- Which program ---- */

/* Says why a program does not run, and refuses it; a script for its interpreter. */
static bool is_refused(const char *path)
{
	char rooms[2][PATH_MAX];

	if (vt_factor == 1)
		return false;
	for (int depth = 0; depth <= MAX_SCRIPTS; depth++) {
		const char *problem = vt_refusal(path);

		if (problem) {
			dprintf(STDERR_FILENO, "libvt: %s %s\n", path, problem);
			errno = EACCES;
			return true;
		}
		if (!vt_interpreter(path, rooms[depth % 2], PATH_MAX))
			return false;
		path = rooms[depth % 2];
	}
	return false;
}

static bool is_program(const char *path)
{
	struct stat status;

	return !access(path, X_OK) && !stat(path, &status) && S_ISREG(status.st_mode);
}

/* The file that a shell would find; `name` itself when there is none. */
static const char *find(const char *name, char *room)
{
	const char *place = getenv("PATH");

	if (strchr(name, '/'))
		return name;
	for (place = place ? place : DEFAULT_PATH;; place++) {
		size_t length = strcspn(place, ":");

		if (length + 1 + strlen(name) < PATH_MAX) {
			memcpy(room, place, length);
			strcpy(room + length, length ? "/" : "");
			strcat(room, name);
			if (is_program(room))
				return room;
		}
		place += length;
		if (!*place)
			return name;
	}
}

/* ---- Its environment ---- */

/* The value of a variable `NAME=` in an environment; NULL when it is not there. */
static const char *value_in(char *const environment[], const char *variable)
{
	size_t length = strcspn(variable, "=") + 1;

	for (; environment && *environment; environment++)
		if (!strncmp(*environment, variable, length))
			return *environment + length;
	return NULL;
}

static size_t count(char *const list[])
{
	size_t length = 0;

	while (list && list[length])
		length++;
	return length;
}

/* Whether LibVT has to be put before the present value of LD_PRELOAD. */
static bool lacks_library(const char *value)
{
	return value && *value && !strstr(value, vt_file);
}

/* Bytes of a text that has LibVT and the value of LD_PRELOAD. */
static size_t preload_size(char *const environment[])
{
	const char *value = value_in(environment, PRELOAD);

	return strlen(PRELOAD) + strlen(vt_file) + 2 + (value ? strlen(value) : 0);
}

/* Copies an environment to `room`, with our variables; `preload` has room for an LD_PRELOAD. */
static void complete(char *const environment[], char **room, char *preload)
{
	const char *loaded = value_in(environment, PRELOAD);

	for (; environment && *environment; environment++) {
		bool ours = false;

		for (int i = 0; vt_environment[0] && i < VT_VARIABLES; i++)
			ours |= !strncmp(*environment, vt_environment[i], strcspn(vt_environment[i], "=") + 1);
		if (!ours)
			*room++ = *environment;
	}
	for (int i = 0; vt_environment[0] && i < VT_VARIABLES; i++)
		*room++ = (char *)vt_environment[i];
	if (vt_environment[0] && loaded && *loaded) {
		strcpy(preload, PRELOAD);
		if (lacks_library(loaded))
			strcat(strcat(preload, vt_file), ":");
		room[-VT_VARIABLES] = strcat(preload, loaded);
	}
	*room = NULL;
}

/* Declares `completed`: the environment `given`, and the variables of LibVT that it lacks. */
#define COMPLETE(given) \
	char *completed[count(given) + VT_VARIABLES + 1], preload[preload_size(given)]; \
	complete(given, completed, preload)

/* The same for the program's own environment, before the C library starts a shell with it. */
static void complete_own(void)
{
	const char *loaded = getenv("LD_PRELOAD");

	for (int i = 0; vt_environment[0] && i < VT_VARIABLES; i++) {
		char name[32];
		size_t length = strcspn(vt_environment[i], "=");

		snprintf(name, sizeof(name), "%.*s", (int)length, vt_environment[i]);
		if (!getenv(name) || !*getenv(name))
			setenv(name, vt_environment[i] + length + 1, 1);
	}
	if (vt_environment[0] && lacks_library(loaded)) {
		char preload[preload_size(environ)];

		snprintf(preload, sizeof(preload), "%s:%s", vt_file, loaded);
		setenv("LD_PRELOAD", preload, 1);
	}
}

/* ---- exec ---- */

EXPORT int execve(const char *path, char *const words[], char *const environment[])
{
	vt_begin();
	if (is_refused(path))
		return -1;
	COMPLETE(environment);
	return next_execve(path, words, completed);
}

EXPORT int execv(const char *path, char *const words[])
{
	return execve(path, words, environ);
}

EXPORT int execvpe(const char *name, char *const words[], char *const environment[])
{
	char room[PATH_MAX];

	vt_begin();
	if (is_refused(find(name, room)))
		return -1;
	COMPLETE(environment);
	return next_execvpe(name, words, completed);
}

EXPORT int execvp(const char *name, char *const words[])
{
	return execvpe(name, words, environ);
}

/* Declares `words`: the arguments from `first` on, up to a null pointer. `rest` is left behind that. */
#define GATHER(first) \
	va_list rest; \
	size_t length = 1; \
	va_start(rest, first); \
	while (va_arg(rest, char *)) \
		length++; \
	va_end(rest); \
	char *words[length + 1]; \
	va_start(rest, first); \
	words[0] = (char *)first; \
	for (size_t i = 1; i <= length; i++) \
		words[i] = va_arg(rest, char *)

EXPORT int execl(const char *path, const char *first, ...)
{
	GATHER(first);
	va_end(rest);
	return execve(path, words, environ);
}

EXPORT int execlp(const char *name, const char *first, ...)
{
	GATHER(first);
	va_end(rest);
	return execvpe(name, words, environ);
}

EXPORT int execle(const char *path, const char *first, ...)
{
	char *const *environment;

	GATHER(first);
	environment = va_arg(rest, char *const *);
	va_end(rest);
	return execve(path, words, environment);
}

EXPORT int fexecve(int file, char *const words[], char *const environment[])
{
	char path[64];

	vt_begin();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	if (is_refused(path))
		return -1;
	COMPLETE(environment);
	return next_fexecve(file, words, completed);
}

EXPORT int execveat(int folder, const char *path, char *const words[], char *const environment[], int flags)
{
	char whole[PATH_MAX];

	vt_begin();
	if (folder == AT_FDCWD || *path == '/')
		snprintf(whole, sizeof(whole), "%s", path);
	else
		snprintf(whole, sizeof(whole), "/proc/self/fd/%d%s%s", folder, *path ? "/" : "", path);
	if (is_refused(whole))
		return -1;
	COMPLETE(environment);
	return next_execveat(folder, path, words, completed, flags);
}

/* ---- The C library's own ways to start a program ---- */

EXPORT int posix_spawn(pid_t *restrict pid, const char *restrict path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *restrict attributes, char *const words[restrict],
		       char *const environment[restrict])
{
	vt_begin();
	if (is_refused(path))
		return errno;
	COMPLETE(environment);
	return next_posix_spawn(pid, path, actions, attributes, words, completed);
}

EXPORT int posix_spawnp(pid_t *restrict pid, const char *restrict name, const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *restrict attributes, char *const words[restrict],
			char *const environment[restrict])
{
	char room[PATH_MAX];

	vt_begin();
	if (is_refused(find(name, room)))
		return errno;
	COMPLETE(environment);
	return next_posix_spawnp(pid, name, actions, attributes, words, completed);
}

EXPORT int system(const char *command)
{
	vt_begin();
	complete_own();
	return next_system(command);
}

EXPORT FILE *popen(const char *command, const char *mode)
{
	vt_begin();
	complete_own();
	return next_popen(command, mode);
}
