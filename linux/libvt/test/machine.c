/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A machine made up for the test of LibVT, loaded behind it (its own calls of what is here would go through LibVT). Its
 * clocks stand still 100 s after their starts.
 * Every wait is over at once: it notes in `machine_saw` the time that it was given, in nanoseconds, and answers as if a
 * signal had come with 3 s left.
 */
#define _GNU_SOURCE
#include "../calls.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "calls.h"

int64_t machine_saw;

static const struct timespec left = { .tv_sec = LEFT };
static const struct itimerval left_of_interval = { { .tv_sec = LEFT }, { .tv_sec = LEFT } };
static const struct itimerspec left_of_timer = { { .tv_sec = LEFT }, { .tv_sec = LEFT } };

static int interrupted(void)
{
	errno = EINTR;
	return -1;
}

static int see(const struct timespec *time)
{
	machine_saw = time ? time->tv_sec * 1000000000LL + time->tv_nsec : FOREVER;
	return interrupted();
}

/* Returns the error, as the calls about threads do. */
static int see_moment(const struct timespec *time)
{
	see(time);
	return ETIMEDOUT;
}

static int see_timeval(const struct timeval *time)
{
	return see(&(struct timespec){ time->tv_sec, time->tv_usec * 1000 });
}

/* ---- Clocks ---- */

static struct timespec now_on(clockid_t clock)
{
	return (struct timespec){ start_of(clock) + PASSED, 0 };
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	*now = now_on(clock);
	return 0;
}

int gettimeofday(struct timeval *now, void *zone)
{
	memset(zone, 0, sizeof(struct timezone));
	*now = (struct timeval){ 0 };
	return 0;
}

int timespec_get(struct timespec *now, int base)
{
	*now = now_on(CLOCK_REALTIME);
	return base;
}

clock_t clock(void)
{
	return PASSED * CLOCKS_PER_SEC;
}

clock_t times(struct tms *used)
{
	*used = (struct tms){ PASSED, PASSED, PASSED, PASSED };
	return 1;
}

static void use(struct rusage *usage)
{
	*usage = (struct rusage){ .ru_utime = { PASSED, 0 }, .ru_stime = { PASSED, 0 } };
}

int getrusage(__rusage_who_t who, struct rusage *usage)
{
	use(usage);
	return who != RUSAGE_SELF;
}

pid_t wait3(int *status, int options, struct rusage *usage)
{
	use(usage);
	return *status = options + 1;
}

pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	use(usage);
	*status = options;
	return pid;
}

int sysinfo(struct sysinfo *info)
{
	*info = (struct sysinfo){ .uptime = start_of(CLOCK_BOOTTIME) + PASSED };
	return 0;
}

int clock_settime(clockid_t clock, const struct timespec *time)
{
	machine_saw = clock + time->tv_sec;
	return 0;
}

int settimeofday(const struct timeval *time, const struct timezone *zone)
{
	machine_saw = zone ? 0 : time->tv_sec;
	return 0;
}

int adjtime(const struct timeval *delta, struct timeval *before)
{
	machine_saw = before ? 0 : delta->tv_sec;
	return 0;
}

/* ---- Sleeps and waits ---- */

int nanosleep(const struct timespec *wait, struct timespec *rest)
{
	see(wait);
	if (rest)
		*rest = left;
	return -1;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wait, struct timespec *rest)
{
	see(wait);
	if (rest && !flags)
		*rest = left;
	return clock >= 0 ? EINTR : EINVAL;
}

int thrd_sleep(const struct timespec *wait, struct timespec *rest)
{
	see(wait);
	*rest = left;
	return -1;
}

int select(int count, fd_set *read, fd_set *write, fd_set *except, struct timeval *timeout)
{
	(void)count, (void)read, (void)write, (void)except;
	see_timeval(timeout);
	*timeout = (struct timeval){ .tv_sec = LEFT };
	return -1;
}

int pselect(int count, fd_set *read, fd_set *write, fd_set *except, const struct timespec *timeout,
	    const sigset_t *mask)
{
	(void)count, (void)read, (void)write, (void)except, (void)mask;
	return see(timeout);
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	(void)fds, (void)count, (void)mask;
	return see(timeout);
}

int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t size)
{
	(void)fds, (void)count, (void)mask, (void)size;
	return see(timeout);
}

int epoll_pwait2(int epoll, struct epoll_event *events, int most, const struct timespec *timeout, const sigset_t *mask)
{
	(void)epoll, (void)events, (void)most, (void)mask;
	return see(timeout);
}

int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	(void)set, (void)info;
	return see(timeout);
}

int semtimedop(int semaphores, struct sembuf *operations, size_t count, const struct timespec *timeout)
{
	(void)semaphores, (void)operations, (void)count;
	return see(timeout);
}

int mq_timedsend(mqd_t queue, const char *message, size_t length, unsigned int priority, const struct timespec *until)
{
	(void)queue, (void)message, (void)length, (void)priority;
	return see(until);
}

ssize_t mq_timedreceive(mqd_t queue, char *restrict message, size_t length, unsigned int *restrict priority,
			const struct timespec *restrict until)
{
	(void)queue, (void)message, (void)length, (void)priority;
	return see(until);
}

int aio_suspend(const struct aiocb *const list[], int count, const struct timespec *timeout)
{
	(void)list, (void)count;
	return see(timeout);
}

/* ---- Timers ---- */

int setitimer(__itimer_which_t which, const struct itimerval *timer, struct itimerval *before)
{
	(void)which;
	see_timeval(&timer->it_value);
	machine_saw += timer->it_interval.tv_sec * 1000000000LL + timer->it_interval.tv_usec * 1000;
	if (before)
		*before = left_of_interval;
	return 0;
}

int getitimer(__itimer_which_t which, struct itimerval *timer)
{
	*timer = left_of_interval;
	return which != ITIMER_REAL;
}

int timer_create(clockid_t clock, struct sigevent *event, timer_t *timer)
{
	(void)event;
	*timer = (timer_t)(uintptr_t)clock;
	return 0;
}

int timer_delete(timer_t timer)
{
	return !timer;
}

static int set_timer(const struct itimerspec *value, struct itimerspec *before)
{
	see(&value->it_value);
	if (value->it_interval.tv_sec)
		machine_saw += value->it_interval.tv_sec * 1000000000LL;
	if (before)
		*before = left_of_timer;
	return 0;
}

int timer_settime(timer_t timer, int flags, const struct itimerspec *value, struct itimerspec *before)
{
	(void)timer, (void)flags;
	return set_timer(value, before);
}

int timer_gettime(timer_t timer, struct itimerspec *value)
{
	(void)timer;
	*value = left_of_timer;
	return 0;
}

int timerfd_settime(int file, int flags, const struct itimerspec *value, struct itimerspec *before)
{
	(void)file, (void)flags;
	return set_timer(value, before);
}

int timerfd_gettime(int file, struct itimerspec *value)
{
	(void)file;
	*value = left_of_timer;
	return 0;
}

/* ---- Threads ---- */

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
			   const struct timespec *restrict until)
{
	(void)condition, (void)mutex;
	return see_moment(until);
}

int pthread_cond_clockwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, clockid_t clock,
			   const struct timespec *restrict until)
{
	(void)condition, (void)mutex, (void)clock;
	return see_moment(until);
}

#define LOCK(name, type) \
	int name(type *restrict lock, const struct timespec *restrict until) \
	{ \
		(void)lock; \
		return see_moment(until); \
	}
LOCK(pthread_mutex_timedlock, pthread_mutex_t)
LOCK(pthread_rwlock_timedrdlock, pthread_rwlock_t)
LOCK(pthread_rwlock_timedwrlock, pthread_rwlock_t)
LOCK(mtx_timedlock, mtx_t)
LOCK(sem_timedwait, sem_t)

#define CLOCK_LOCK(name, type) \
	int name(type *restrict lock, clockid_t clock, const struct timespec *restrict until) \
	{ \
		(void)lock, (void)clock; \
		return see_moment(until); \
	}
CLOCK_LOCK(pthread_mutex_clocklock, pthread_mutex_t)
CLOCK_LOCK(pthread_rwlock_clockrdlock, pthread_rwlock_t)
CLOCK_LOCK(pthread_rwlock_clockwrlock, pthread_rwlock_t)
CLOCK_LOCK(sem_clockwait, sem_t)

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until)
{
	(void)condition, (void)mutex;
	return see_moment(until);
}

int pthread_timedjoin_np(pthread_t thread, void **value, const struct timespec *until)
{
	(void)thread, (void)value;
	return see_moment(until);
}

int pthread_clockjoin_np(pthread_t thread, void **value, clockid_t clock, const struct timespec *until)
{
	(void)thread, (void)value, (void)clock;
	return see_moment(until);
}

/* ---- Sockets ---- */

int setsockopt(int socket, int level, int name, const void *value, socklen_t length)
{
	struct timeval span;

	(void)socket, (void)level;
	machine_saw = 0;
	if (name == SO_RCVTIMEO || name == SO_SNDTIMEO) {
		memcpy(&span, value, sizeof(span));
		return see_timeval(&span);
	}
	if (level == SOL_SOCKET && name == SO_LINGER)
		machine_saw = ((const struct linger *)value)->l_linger;
	else
		memcpy(&machine_saw, value, length < sizeof(machine_saw) ? length : sizeof(machine_saw));
	return 0;
}

int getsockopt(int socket, int level, int name, void *restrict value, socklen_t *restrict length)
{
	(void)socket;
	if (level == IPPROTO_TCP && name == TCP_INFO) {
		*(struct tcp_info *)value = (struct tcp_info){
			.tcpi_rtt = LEFT, .tcpi_delivery_rate = LEFT, .tcpi_pacing_rate = UINT64_MAX, .tcpi_snd_cwnd = LEFT,
		};
	} else if (name == SO_RCVTIMEO || name == SO_SNDTIMEO) {
		*(struct timeval *)value = (struct timeval){ .tv_sec = LEFT };
	} else {
		memset(value, 0, *length);
		*(int *)value = LEFT;
		if (level == SOL_SOCKET && name == SO_LINGER)
			((struct linger *)value)->l_linger = LEFT;
	}
	return 0;
}

/* An arrival of now. */
static void stamp(struct msghdr *message, int type)
{
	struct cmsghdr *part = CMSG_FIRSTHDR(message);
	struct timespec now = now_on(CLOCK_REALTIME);

	part->cmsg_level = SOL_SOCKET;
	part->cmsg_type = type;
	part->cmsg_len = CMSG_LEN(sizeof(now));
	memcpy(CMSG_DATA(part), &now, sizeof(now)); /* whole seconds: a timeval looks the same */
}

ssize_t recvmsg(int socket, struct msghdr *message, int flags)
{
	(void)socket;
	stamp(message, flags);
	return 0;
}

int recvmmsg(int socket, struct mmsghdr *messages, unsigned int length, int flags, struct timespec *timeout)
{
	(void)socket, (void)length;
	see(timeout);
	*timeout = left;
	stamp(&messages[0].msg_hdr, flags);
	return 1;
}

int ioctl(int file, unsigned long request, ...)
{
	va_list list;

	(void)file, (void)request;
	va_start(list, request);
	*va_arg(list, struct timespec *) = now_on(CLOCK_REALTIME);
	va_end(list);
	return 0;
}

/* ---- By number ---- */

long syscall(long number, ...)
{
	long arguments[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	see((void *)arguments[number == SYS_futex || number == FUTEX_WAITV ? 3 : 4]);
	return 0;
}
