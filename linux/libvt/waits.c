/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The calls that wait for something, and give up after a time. */
#define _GNU_SOURCE
#include "vt.h"

#include <limits.h>

/* A time-out in milliseconds as a longer one; NULL for one that never comes. */
static const struct timespec *milliseconds(int timeout, struct timespec *room)
{
	if (timeout < 0)
		return NULL;
	*room = vt_timespec(vt_stretch(timeout * NS_PER_MS));
	return room;
}

/* ---- Files ---- */

/* The kernel writes back the time left. */
EXPORT int select(int count, fd_set *read, fd_set *write, fd_set *except, struct timeval *timeout)
{
	struct timeval room, *wait;
	int result;

	vt_begin();
	wait = vt_wait_timeval(timeout, &room);
	result = next_select(count, read, write, except, wait);
	if (timeout && (result >= 0 || errno == EINTR))
		*timeout = vt_timeval(vt_shrink(vt_timeval_ns(*wait)));
	return result;
}

EXPORT int pselect(int count, fd_set *read, fd_set *write, fd_set *except, const struct timespec *timeout,
		   const sigset_t *mask)
{
	struct timespec room;

	vt_begin();
	return next_pselect(count, read, write, except, vt_wait(timeout, &room), mask);
}

EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	struct timespec room;

	vt_begin();
	return next_ppoll(fds, count, milliseconds(timeout, &room), NULL);
}

EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	struct timespec room;

	vt_begin();
	return next_ppoll(fds, count, vt_wait(timeout, &room), mask);
}

EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t size)
{
	struct timespec room;

	vt_begin();
	return next___ppoll_chk(fds, count, milliseconds(timeout, &room), NULL, size);
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask,
		       size_t size)
{
	struct timespec room;

	vt_begin();
	return next___ppoll_chk(fds, count, vt_wait(timeout, &room), mask, size);
}

/* C libraries before 2.35 only have the call that counts in milliseconds. */
EXPORT int epoll_pwait(int epoll, struct epoll_event *events, int most, int timeout, const sigset_t *mask)
{
	struct timespec room;
	int64_t stretched;

	vt_begin();
	if (next_epoll_pwait2)
		return next_epoll_pwait2(epoll, events, most, milliseconds(timeout, &room), mask);
	stretched = timeout < 0 ? -1 : vt_stretch(timeout);
	return next_epoll_pwait(epoll, events, most, stretched > INT_MAX ? INT_MAX : stretched, mask);
}

EXPORT int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout)
{
	return epoll_pwait(epoll, events, most, timeout, NULL);
}

EXPORT int epoll_pwait2(int epoll, struct epoll_event *events, int most, const struct timespec *timeout,
			const sigset_t *mask)
{
	struct timespec room;

	vt_begin();
	if (!next_epoll_pwait2) {
		errno = ENOSYS;
		return -1;
	}
	return next_epoll_pwait2(epoll, events, most, vt_wait(timeout, &room), mask);
}

EXPORT int aio_suspend(const struct aiocb *const list[], int count, const struct timespec *timeout)
{
	struct timespec room;

	vt_begin();
	return next_aio_suspend(list, count, vt_wait(timeout, &room));
}

/* ---- Signals, semaphores and queues of System V and POSIX ---- */

EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	struct timespec room;

	vt_begin();
	return next_sigtimedwait(set, info, vt_wait(timeout, &room));
}

EXPORT int semtimedop(int semaphores, struct sembuf *operations, size_t count, const struct timespec *timeout)
{
	struct timespec room;

	vt_begin();
	return next_semtimedop(semaphores, operations, count, vt_wait(timeout, &room));
}

EXPORT int mq_timedsend(mqd_t queue, const char *message, size_t length, unsigned int priority,
			const struct timespec *until)
{
	struct timespec room;

	vt_begin();
	return next_mq_timedsend(queue, message, length, priority, vt_moment(CLOCK_REALTIME, until, &room));
}

EXPORT ssize_t mq_timedreceive(mqd_t queue, char *restrict message, size_t length, unsigned int *restrict priority,
			       const struct timespec *restrict until)
{
	struct timespec room;

	vt_begin();
	return next_mq_timedreceive(queue, message, length, priority, vt_moment(CLOCK_REALTIME, until, &room));
}
