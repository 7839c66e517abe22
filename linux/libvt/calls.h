/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Every call of the C library that LibVT stands before, once. CALLS(X) expands X for each name; `next_NAME` is the
 * function that would have been called without LibVT. docs/models/dilated-hosts.md has the same list as a table, and a
 * test compares the two.
 */
#ifndef LIBVT_CALLS_H
#define LIBVT_CALLS_H

#include <aio.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* Programs built with _FORTIFY_SOURCE call these in place of poll() and ppoll(). */
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t size);

#define CALLS(X) \
	/* clocks.c */ \
	X(clock_gettime) X(gettimeofday) X(time) X(timespec_get) X(clock) X(times) X(getrusage) X(wait3) X(wait4) \
	X(sysinfo) X(clock_settime) X(settimeofday) X(adjtime) \
	/* sleeps.c */ \
	X(nanosleep) X(clock_nanosleep) X(usleep) X(sleep) X(thrd_sleep) \
	/* waits.c */ \
	X(select) X(pselect) X(poll) X(ppoll) X(__poll_chk) X(__ppoll_chk) X(epoll_wait) X(epoll_pwait) X(epoll_pwait2) \
	X(sigtimedwait) X(semtimedop) X(mq_timedsend) X(mq_timedreceive) X(aio_suspend) \
	/* timers.c */ \
	X(alarm) X(ualarm) X(setitimer) X(getitimer) X(timer_create) X(timer_delete) X(timer_settime) X(timer_gettime) \
	X(timerfd_settime) X(timerfd_gettime) \
	/* threads.c */ \
	X(pthread_cond_timedwait) X(pthread_cond_clockwait) X(pthread_mutex_timedlock) X(pthread_mutex_clocklock) \
	X(pthread_rwlock_timedrdlock) X(pthread_rwlock_clockrdlock) X(pthread_rwlock_timedwrlock) \
	X(pthread_rwlock_clockwrlock) X(pthread_timedjoin_np) X(pthread_clockjoin_np) X(sem_timedwait) X(sem_clockwait) \
	X(cnd_timedwait) X(mtx_timedlock) \
	/* sockets.c */ \
	X(setsockopt) X(getsockopt) X(recvmsg) X(recvmmsg) X(ioctl) \
	/* raw.c */ \
	X(syscall) \
	/* exec.c */ \
	X(execve) X(execv) X(execvp) X(execvpe) X(execl) X(execlp) X(execle) X(fexecve) X(execveat) X(posix_spawn) \
	X(posix_spawnp) X(system) X(popen)

#define DECLARE_NEXT(name) extern __typeof__(name) *next_##name;
CALLS(DECLARE_NEXT)
#undef DECLARE_NEXT

#endif
