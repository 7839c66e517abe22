/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * LibADU: counts what unmodified programs write to their TCP connections, for a fabric that schedules circuits by it
 * (the interposition library of the talk of Etalon's first version, "demand estimation").
 *
 * A write counts with all of its bytes from its beginning on, those included for which a blocked program waits; of one
 * that takes fewer the rest is taken back when it returns.
 */
#define _GNU_SOURCE
#include "table.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
/* The kernel takes no more at once. */
#define LARGEST 0x7ffff000

#define CALLS(X) X(write) X(writev) X(send) X(sendto) X(sendmsg) X(sendmmsg) X(sendfile) X(splice)

#define DEFINE_NEXT(name) static __typeof__(name) *next_##name;
CALLS(DEFINE_NEXT)
#undef DEFINE_NEXT

static bool is_ready;

static void begin(void)
{
	if (__builtin_expect(is_ready, 1))
		return;
#define FIND(name) next_##name = (__typeof__(next_##name))dlsym(RTLD_NEXT, #name);
	CALLS(FIND)
#undef FIND
	is_ready = true;
	adu_open();
}

__attribute__((constructor(101))) static void construct(void)
{
	begin();
}

/* ---- Before and after a write ---- */

/* A write that is under way. */
struct write {
	struct adu_entry *account;
	size_t announced;
};

static struct write announce(int file, size_t bytes)
{
	struct write write = { .account = adu_account(file), .announced = bytes > LARGEST ? LARGEST : bytes };

	if (write.account && write.announced)
		adu_add(write.account, write.announced);
	return write;
}

/* The write took so many bytes, or failed: its result is the call's. */
static ssize_t conclude(struct write write, ssize_t taken)
{
	size_t bytes = taken > 0 ? taken : 0;

	if (write.account && bytes != write.announced)
		adu_add(write.account, (int64_t)bytes - (int64_t)write.announced);
	return taken;
}

static size_t length_of(const struct iovec *parts, size_t count)
{
	size_t bytes = 0;

	for (size_t i = 0; parts && i < count && i < IOV_MAX; i++)
		bytes += parts[i].iov_len;
	return bytes;
}

/* Bytes of a file from its position, or from `offset`, on; `most` if it is no regular file. */
static size_t left_in(int file, const off_t *offset, size_t most)
{
	struct stat status;
	off_t at;

	if (fstat(file, &status) || !S_ISREG(status.st_mode))
		return most;
	at = offset ? *offset : lseek(file, 0, SEEK_CUR);
	if (at < 0 || at >= status.st_size)
		return 0;
	return (size_t)(status.st_size - at) < most ? (size_t)(status.st_size - at) : most;
}

/* Bytes that wait in a pipe; later bytes are written later. */
static size_t waiting_in(int pipe, size_t most)
{
	int waiting;

	if (ioctl(pipe, FIONREAD, &waiting) || waiting < 0)
		return 0;
	return (size_t)waiting < most ? (size_t)waiting : most;
}

/* ---- Calls ---- */

/* The result of `call`, which writes `bytes` to `file`; they are counted before. */
#define COUNT(file, bytes, call) \
	({ \
		struct write counted_; \
\
		begin(); \
		counted_ = announce(file, bytes); \
		conclude(counted_, call); \
	})

EXPORT ssize_t write(int file, const void *bytes, size_t length)
{
	return COUNT(file, length, next_write(file, bytes, length));
}

EXPORT ssize_t writev(int file, const struct iovec *parts, int count)
{
	return COUNT(file, length_of(parts, count), next_writev(file, parts, count));
}

EXPORT ssize_t send(int socket, const void *bytes, size_t length, int flags)
{
	return COUNT(socket, length, next_send(socket, bytes, length, flags));
}

EXPORT ssize_t sendto(int socket, const void *bytes, size_t length, int flags, const struct sockaddr *to,
		      socklen_t size)
{
	return COUNT(socket, length, next_sendto(socket, bytes, length, flags, to, size));
}

EXPORT ssize_t sendmsg(int socket, const struct msghdr *message, int flags)
{
	return COUNT(socket, length_of(message->msg_iov, message->msg_iovlen), next_sendmsg(socket, message, flags));
}

EXPORT int sendmmsg(int socket, struct mmsghdr *messages, unsigned int count, int flags)
{
	size_t announced = 0, taken = 0;
	struct write write;
	int sent;

	begin();
	for (unsigned int i = 0; i < count; i++)
		announced += length_of(messages[i].msg_hdr.msg_iov, messages[i].msg_hdr.msg_iovlen);
	write = announce(socket, announced);
	sent = next_sendmmsg(socket, messages, count, flags);
	for (int i = 0; i < sent; i++)
		taken += messages[i].msg_len;
	conclude(write, taken);
	return sent;
}

EXPORT ssize_t sendfile(int socket, int file, off_t *offset, size_t count)
{
	return COUNT(socket, left_in(file, offset, count), next_sendfile(socket, file, offset, count));
}

EXPORT ssize_t splice(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t length, unsigned int flags)
{
	return COUNT(to, waiting_in(from, length), next_splice(from, from_offset, to, to_offset, length, flags));
}

/* Other names of the same, where offsets always have 64 bits. */
#if __SIZEOF_POINTER__ == 8
EXPORT __typeof__(sendfile64) sendfile64 __attribute__((alias("sendfile")));
#endif
