/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* LibADU's account of each TCP connection over IPv4. */
#ifndef LIBADU_TABLE_H
#define LIBADU_TABLE_H

#include "adu.h"

#include <stddef.h>

/* Opens the table that the environment names; without one nothing is counted. */
void adu_open(void);

/* The account of a file descriptor; NULL for a file that is no TCP connection over IPv4. Keeps errno. */
struct adu_entry *adu_account(int file);

/* So many bytes more are going to be written, or were not written after all. */
void adu_add(struct adu_entry *account, int64_t bytes);

#endif
