/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Time-outs and rates that a program sets on its sockets, and the times that sockets report. */
#define _GNU_SOURCE
#include "vt.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

/* ---- Options ---- */

/* The form of an option's value. */
enum form { SPAN, LINGER, COUNT, RATE };

/* Some of them are younger than the headers that this is built with. */
#define TCP_RTO_MAX_MS_ 44
#define TCP_RTO_MIN_US_ 45
#define TCP_DELACK_MAX_US_ 46
#define SO_RCVTIMEO_NEW_ 66
#define SO_SNDTIMEO_NEW_ 67

/* The longest time of the kernel's that an option of whole seconds takes. */
#define LONGEST_KEEPALIVE 32767

static const struct option {
	int level, name;
	enum form form;
	int most;
} options[] = {
	{ SOL_SOCKET, SO_RCVTIMEO, SPAN, 0 },
	{ SOL_SOCKET, SO_SNDTIMEO, SPAN, 0 },
	{ SOL_SOCKET, SO_RCVTIMEO_NEW_, SPAN, 0 },
	{ SOL_SOCKET, SO_SNDTIMEO_NEW_, SPAN, 0 },
	{ SOL_SOCKET, SO_LINGER, LINGER, 0 },
	{ SOL_SOCKET, SO_MAX_PACING_RATE, RATE, 0 },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT, COUNT, INT32_MAX },
	{ IPPROTO_TCP, TCP_KEEPIDLE, COUNT, LONGEST_KEEPALIVE },
	{ IPPROTO_TCP, TCP_KEEPINTVL, COUNT, LONGEST_KEEPALIVE },
	{ IPPROTO_TCP, TCP_LINGER2, COUNT, INT32_MAX },
	{ IPPROTO_TCP, TCP_DEFER_ACCEPT, COUNT, INT32_MAX },
	{ IPPROTO_TCP, TCP_RTO_MAX_MS_, COUNT, INT32_MAX },
	{ IPPROTO_TCP, TCP_RTO_MIN_US_, COUNT, INT32_MAX },
	{ IPPROTO_TCP, TCP_DELACK_MAX_US_, COUNT, INT32_MAX },
};

static const struct option *option_of(int level, int name)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (options[i].level == level && options[i].name == name)
			return &options[i];
	return NULL;
}

static int stretched_count(int value, int most)
{
	int64_t real = value > 0 ? vt_stretch(value) : value;

	return real > most ? most : real;
}

/* A value in any of its forms. */
union value {
	struct timeval span;
	struct linger linger;
	int count;
	uint32_t rate;
	uint64_t wide_rate;
};

/* Makes the value one for the machine; false when it is too short to be one. */
static bool to_real(const struct option *option, union value *value, socklen_t length)
{
	switch (option->form) {
	case SPAN:
		if (length < sizeof(value->span))
			return false;
		vt_wait_timeval(&value->span, &value->span);
		return true;
	case LINGER:
		if (length < sizeof(value->linger))
			return false;
		value->linger.l_linger = stretched_count(value->linger.l_linger, INT32_MAX);
		return true;
	case COUNT:
		if (length < sizeof(value->count))
			return false;
		value->count = stretched_count(value->count, option->most);
		return true;
	case RATE:
		if (length == sizeof(value->wide_rate) && value->wide_rate != UINT64_MAX)
			value->wide_rate = value->wide_rate / vt_factor;
		else if (length < sizeof(value->wide_rate) && length >= sizeof(value->rate) && value->rate != UINT32_MAX)
			value->rate = value->rate / vt_factor;
		return length >= sizeof(value->rate);
	}
	return false;
}

static void to_virtual(const struct option *option, union value *value, socklen_t length)
{
	switch (option->form) {
	case SPAN:
		if (length >= sizeof(value->span))
			value->span = vt_timeval(vt_shrink(vt_timeval_ns(value->span)));
		break;
	case LINGER:
		if (length >= sizeof(value->linger))
			value->linger.l_linger = vt_shrink(value->linger.l_linger);
		break;
	case COUNT:
		if (length >= sizeof(value->count) && value->count > 0)
			value->count = vt_shrink(value->count);
		break;
	case RATE:
		if (length == sizeof(value->wide_rate) && value->wide_rate != UINT64_MAX)
			value->wide_rate = vt_multiply(value->wide_rate, vt_factor);
		else if (length == sizeof(value->rate) && value->rate != UINT32_MAX)
			value->rate = vt_multiply(value->rate, vt_factor) < UINT32_MAX ? value->rate * vt_factor : UINT32_MAX;
		break;
	}
}

EXPORT int setsockopt(int socket, int level, int name, const void *given, socklen_t length)
{
	const struct option *option = option_of(level, name);
	union value value;

	vt_begin();
	if (!option || !given || length > sizeof(value))
		return next_setsockopt(socket, level, name, given, length);
	memcpy(&value, given, length);
	if (!to_real(option, &value, length))
		return next_setsockopt(socket, level, name, given, length);
	return next_setsockopt(socket, level, name, &value, length);
}

/* ---- TCP_INFO ---- */

/* A field of the structure: where, how long, and whether it is a time or a rate. */
#define FIELD(name, is_rate) { offsetof(struct tcp_info, name), sizeof(((struct tcp_info *)0)->name), is_rate }
static const struct {
	size_t at, size;
	bool is_rate;
} fields[] = {
	FIELD(tcpi_rto, false), FIELD(tcpi_ato, false), FIELD(tcpi_last_data_sent, false),
	FIELD(tcpi_last_data_recv, false), FIELD(tcpi_last_ack_recv, false), FIELD(tcpi_rtt, false),
	FIELD(tcpi_rttvar, false), FIELD(tcpi_rcv_rtt, false), FIELD(tcpi_pacing_rate, true),
	FIELD(tcpi_max_pacing_rate, true), FIELD(tcpi_min_rtt, false), FIELD(tcpi_delivery_rate, true),
	FIELD(tcpi_busy_time, false), FIELD(tcpi_rwnd_limited, false), FIELD(tcpi_sndbuf_limited, false),
};

/* Fields of the structure without a value yet have all bits set. */
static uint64_t shown(uint64_t value, uint64_t none, bool is_rate)
{
	if (value == none)
		return value;
	return is_rate ? (uint64_t)vt_multiply(value, vt_factor) : (uint64_t)vt_shrink(value);
}

static void show_tcp_info(unsigned char *info, socklen_t length)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		uint64_t wide;
		uint32_t narrow;

		if (fields[i].at + fields[i].size > length)
			continue;
		if (fields[i].size == sizeof(wide)) {
			memcpy(&wide, info + fields[i].at, sizeof(wide));
			wide = shown(wide, UINT64_MAX, fields[i].is_rate);
			memcpy(info + fields[i].at, &wide, sizeof(wide));
		} else {
			memcpy(&narrow, info + fields[i].at, sizeof(narrow));
			narrow = shown(narrow, UINT32_MAX, fields[i].is_rate);
			memcpy(info + fields[i].at, &narrow, sizeof(narrow));
		}
	}
}

EXPORT int getsockopt(int socket, int level, int name, void *restrict room, socklen_t *restrict length)
{
	const struct option *option = option_of(level, name);
	union value value;
	int result;

	vt_begin();
	result = next_getsockopt(socket, level, name, room, length);
	if (result)
		return result;
	if (level == IPPROTO_TCP && name == TCP_INFO)
		show_tcp_info(room, *length);
	if (!option || *length > sizeof(value))
		return 0;
	memcpy(&value, room, *length);
	to_virtual(option, &value, *length);
	memcpy(room, &value, *length);
	return 0;
}

/* ---- Times of arrival ---- */

static int64_t arrival(int64_t real)
{
	return real ? vt_virtual(CLOCK_REALTIME, real) : 0;
}

static void show_timespec(void *at)
{
	struct timespec time;

	memcpy(&time, at, sizeof(time));
	time = vt_timespec(arrival(vt_ns(time)));
	memcpy(at, &time, sizeof(time));
}

static void show_timeval(void *at)
{
	struct timeval time;

	memcpy(&time, at, sizeof(time));
	time = vt_timeval(arrival(vt_timeval_ns(time)));
	memcpy(at, &time, sizeof(time));
}

/* The options' numbers before and since times are 64 bits wide everywhere; on 64-bit machines they hold the same. */
#define TIMESTAMP_NEW 63
#define TIMESTAMPNS_NEW 64
#define TIMESTAMPING_NEW 65

/* Of SO_TIMESTAMPING the first of three times is the kernel's own; the others are devices'. */
static void show_message(struct msghdr *message)
{
	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
		size_t length = part->cmsg_len - CMSG_LEN(0);

		if (part->cmsg_level != SOL_SOCKET)
			continue;
		if ((part->cmsg_type == SO_TIMESTAMP || part->cmsg_type == TIMESTAMP_NEW) &&
		    length >= sizeof(struct timeval))
			show_timeval(CMSG_DATA(part));
		if ((part->cmsg_type == SO_TIMESTAMPNS || part->cmsg_type == TIMESTAMPNS_NEW ||
		     part->cmsg_type == SO_TIMESTAMPING || part->cmsg_type == TIMESTAMPING_NEW) &&
		    length >= sizeof(struct timespec))
			show_timespec(CMSG_DATA(part));
	}
}

EXPORT ssize_t recvmsg(int socket, struct msghdr *message, int flags)
{
	ssize_t result;

	vt_begin();
	result = next_recvmsg(socket, message, flags);
	if (result >= 0)
		show_message(message);
	return result;
}

EXPORT int recvmmsg(int socket, struct mmsghdr *messages, unsigned int count, int flags, struct timespec *timeout)
{
	struct timespec room;
	int result;

	vt_begin();
	result = next_recvmmsg(socket, messages, count, flags, (struct timespec *)vt_wait(timeout, &room));
	for (int i = 0; i < result; i++)
		show_message(&messages[i].msg_hdr);
	if (result >= 0 && timeout)
		*timeout = vt_timespec(vt_shrink(vt_ns(room)));
	return result;
}

EXPORT int ioctl(int file, unsigned long request, ...)
{
	va_list list;
	void *argument;
	int result;

	va_start(list, request);
	argument = va_arg(list, void *);
	va_end(list);
	vt_begin();
	result = next_ioctl(file, request, argument);
	if (result)
		return result;
	if (request == SIOCGSTAMP_OLD || request == SIOCGSTAMP_NEW)
		show_timeval(argument);
	if (request == SIOCGSTAMPNS_OLD || request == SIOCGSTAMPNS_NEW)
		show_timespec(argument);
	return 0;
}
