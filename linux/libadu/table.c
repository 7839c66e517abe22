/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Finds and makes the accounts in the shared table.
 *
 *   LIBADU=/path/to/table     the table of the run; without it the library does nothing
 */
#define _GNU_SOURCE
#include "table.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef SO_COOKIE
#define SO_COOKIE 57
#endif

static struct adu_head *head;
static struct adu_entry *entries;

/* Sockets that are not counted, so that each is looked at once. */
#define PASSED_OVER 1024
static uint64_t passed_over[PASSED_OVER];

/* A program whose writes would not be counted does not run. */
static void fail(const char *path, const char *problem)
{
	dprintf(STDERR_FILENO, "libadu: LIBADU=%s: %s\n", path, problem);
	_exit(125);
}

void adu_open(void)
{
	const char *path = getenv("LIBADU");
	struct stat status;
	void *table;
	int file;

	if (!path || head)
		return;
	file = open(path, O_RDWR | O_CLOEXEC);
	if (file < 0 || fstat(file, &status))
		fail(path, strerror(errno));
	if (status.st_size < (off_t)sizeof(*head))
		fail(path, "is no table of LibADU: `firstlight` makes one for each run");
	table = mmap(NULL, status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (table == MAP_FAILED)
		fail(path, strerror(errno));
	close(file);
	head = table;
	if (head->magic != ADU_MAGIC || status.st_size != (off_t)((head->entries + 1) * sizeof(*entries)))
		fail(path, "is no table of this LibADU: build `firstlight` and the library from one source");
	entries = (struct adu_entry *)(head + 1);
}

/* ---- Which connection ---- */

/* The IPv4 address in a socket's; also one that is written as IPv6. */
static bool ipv4(const struct sockaddr_storage *address, uint8_t octets[4], uint16_t *port)
{
	const struct sockaddr_in *four = (const void *)address;
	const struct sockaddr_in6 *six = (const void *)address;

	if (address->ss_family == AF_INET) {
		memcpy(octets, &four->sin_addr, 4);
		*port = four->sin_port;
		return true;
	}
	if (address->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
		return false;
	memcpy(octets, &six->sin6_addr.s6_addr[12], 4);
	*port = six->sin6_port;
	return true;
}

/* Bytes that the socket has taken: those that were acknowledged, a SYN included, and those that it holds. */
static bool taken(int file, uint64_t *bytes)
{
	struct tcp_info info[2] = { 0 };
	socklen_t length = sizeof(*info);
	int held;

	/* An acknowledgment between the two questions would be missed. */
	do {
		if (getsockopt(file, IPPROTO_TCP, TCP_INFO, &info[0], &length) || ioctl(file, SIOCOUTQ, &held) ||
		    getsockopt(file, IPPROTO_TCP, TCP_INFO, &info[1], &length))
			return false;
	} while (info[0].tcpi_bytes_acked != info[1].tcpi_bytes_acked);
	*bytes = info[0].tcpi_bytes_acked + held;
	return true;
}

enum kind { COUNTED, NOT_CONNECTED, NEVER };

/* Fills in the connection of an account. */
static enum kind describe(int file, struct adu_entry *account)
{
	struct sockaddr_storage own, other;
	socklen_t length = sizeof(int), sizes[2] = { sizeof(own), sizeof(other) };
	int protocol;

	if (getsockopt(file, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) || protocol != IPPROTO_TCP)
		return NEVER;
	if (getsockname(file, (struct sockaddr *)&own, &sizes[0]))
		return NEVER;
	if (getpeername(file, (struct sockaddr *)&other, &sizes[1]))
		return NOT_CONNECTED;
	if (!ipv4(&own, account->from, &account->from_port) || !ipv4(&other, account->to, &account->to_port))
		return NEVER;
	return taken(file, &account->before) ? COUNTED : NOT_CONNECTED;
}

/* ---- Its account ---- */

static struct adu_entry *place(uint64_t index)
{
	return &entries[index % head->entries];
}

static struct adu_entry *find(uint64_t cookie)
{
	for (uint64_t i = 0; i < head->entries; i++) {
		struct adu_entry *entry = place(cookie + i);
		uint64_t found = __atomic_load_n(&entry->cookie, __ATOMIC_ACQUIRE);

		if (found == cookie)
			return entry;
		if (!found)
			return NULL;
	}
	return NULL;
}

static bool is_nobodys(uint64_t cookie)
{
	return !cookie || cookie == ADU_GIVEN_BACK;
}

/* Takes a free entry. When there is none, counts the write as missed and returns NULL. */
static struct adu_entry *make(uint64_t cookie, const struct adu_entry *described)
{
	for (uint64_t i = 0; i < head->entries; i++) {
		struct adu_entry *entry = place(cookie + i);
		uint64_t found = __atomic_load_n(&entry->cookie, __ATOMIC_ACQUIRE);

		while (is_nobodys(found)) {
			if (!__atomic_compare_exchange_n(&entry->cookie, &found, cookie, false, __ATOMIC_ACQ_REL,
							 __ATOMIC_ACQUIRE))
				continue;
			memcpy(entry->from, described->from, sizeof(entry->from));
			memcpy(entry->to, described->to, sizeof(entry->to));
			entry->from_port = described->from_port;
			entry->to_port = described->to_port;
			entry->before = described->before;
			__atomic_store_n(&entry->ready, 1, __ATOMIC_RELEASE);
			__atomic_fetch_add(&head->made, 1, __ATOMIC_RELEASE);
			return entry;
		}
		if (found == cookie)
			return entry;
	}
	__atomic_fetch_add(&head->missed, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&head->changes, 1, __ATOMIC_RELEASE);
	return NULL;
}

static struct adu_entry *account_of(int file)
{
	socklen_t length = sizeof(uint64_t);
	struct adu_entry *entry, described;
	uint64_t cookie;

	if (getsockopt(file, SOL_SOCKET, SO_COOKIE, &cookie, &length))
		return NULL;
	if (__atomic_load_n(&passed_over[cookie % PASSED_OVER], __ATOMIC_RELAXED) == cookie)
		return NULL;
	entry = find(cookie);
	if (entry)
		return entry;
	switch (describe(file, &described)) {
	case COUNTED:
		return make(cookie, &described);
	case NEVER:
		__atomic_store_n(&passed_over[cookie % PASSED_OVER], cookie, __ATOMIC_RELAXED);
		return NULL;
	default:
		return NULL;
	}
}

struct adu_entry *adu_account(int file)
{
	int before = errno;
	struct adu_entry *account = head ? account_of(file) : NULL;

	errno = before;
	return account;
}

void adu_add(struct adu_entry *account, int64_t bytes)
{
	__atomic_fetch_add(&account->written, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&head->changes, 1, __ATOMIC_RELEASE);
}
