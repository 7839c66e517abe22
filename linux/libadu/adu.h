/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The table in which LibADU counts what programs write, shared by all programs of a run and read by the engine
 * (crates/dilated/src/adu.rs has the same structures). It is a file of zeros but for its head.
 *
 * An entry is found by the cookie of its socket, a number that the kernel gives to no other: from the place `cookie %
 * entries` on, up to an empty one. A program takes a free entry by writing its cookie to it, fills it in and sets
 * `ready`. Only the engine gives entries back, when a connection is over: it clears `written` and `ready`, and then
 * writes ADU_GIVEN_BACK to `cookie`. Two threads that meet a new socket at once may make two entries: their sums count.
 */
#ifndef LIBADU_ADU_H
#define LIBADU_ADU_H

#include <stdint.h>

#define ADU_MAGIC 0x31554441 /* "ADU1" */
#define ADU_GIVEN_BACK UINT64_MAX

struct adu_head {
	uint32_t magic;
	uint32_t entries;
	/* How often anything in the table changed: counted up before the bytes go to the kernel. */
	uint64_t changes;
	/* How many entries were made. */
	uint64_t made;
	/* How many writes were not counted, because no entry was left for their connection. */
	uint64_t missed;
	uint64_t unused[4];
};

struct adu_entry {
	uint64_t cookie;
	uint32_t ready;
	/* The connection, as its sender sees it: addresses and ports in network order. */
	uint8_t from[4], to[4];
	uint16_t from_port, to_port;
	/* Bytes that the socket took before LibADU counted. The side that connected has one more, its SYN. */
	uint64_t before;
	/* Bytes written since then, those included that a blocked program waits to write. */
	uint64_t written;
	uint64_t unused[3];
};

_Static_assert(sizeof(struct adu_head) == 64 && sizeof(struct adu_entry) == 64, "a cache line each");

#endif
