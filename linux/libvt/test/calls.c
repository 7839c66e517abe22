/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Makes every call of LibVT and prints a line for each: its name, what the made-up machine was given (`saw`), what the
 * program got back (`got`); times in nanoseconds. Spans that it gives are 1.5 s, moments lie 10 s after the start.
 */
#define _GNU_SOURCE
#include "../calls.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/syscall.h>

#include "calls.h"

#define NS 1000000000LL

static const struct timespec span = { 1, NS / 2 };

static struct timespec moment(clockid_t clock)
{
	return (struct timespec){ start_of(clock) + 10, 0 };
}

static int64_t ns(struct timespec time)
{
	return time.tv_sec * NS + time.tv_nsec;
}

static int64_t ns_of(struct timeval time)
{
	return time.tv_sec * NS + time.tv_usec * 1000LL;
}

static void say(const char *name, int64_t got)
{
	printf("%s saw=%lld got=%lld\n", name, (long long)machine_saw, (long long)got);
	machine_saw = 0;
}

/* Makes a call, ignores its result, and prints `got`. */
#define SAY(name, call, got) \
	do { \
		if ((call) == -77) \
			return; \
		say(name, got); \
	} while (0)

static void clocks(void)
{
	static const struct {
		const char *name;
		clockid_t clock;
	} all[] = {
		{ "realtime", CLOCK_REALTIME }, { "realtime_coarse", CLOCK_REALTIME_COARSE },
		{ "monotonic", CLOCK_MONOTONIC }, { "monotonic_coarse", CLOCK_MONOTONIC_COARSE },
		{ "raw", CLOCK_MONOTONIC_RAW }, { "boottime", CLOCK_BOOTTIME }, { "tai", CLOCK_TAI },
		{ "process", CLOCK_PROCESS_CPUTIME_ID }, { "thread", CLOCK_THREAD_CPUTIME_ID }, { "other_process", -6 },
		{ "device", -5 },
	};
	struct timespec now;
	struct timeval day;
	struct timezone zone;
	struct tms used;
	struct rusage usage;
	struct sysinfo info;
	int status;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		clock_gettime(all[i].clock, &now);
		say(all[i].name, ns(now));
	}
	SAY("gettimeofday", gettimeofday(&day, &zone), ns_of(day));
	say("time", time(NULL) * NS);
	SAY("timespec_get", timespec_get(&now, TIME_UTC), ns(now));
	say("clock", clock() * (NS / CLOCKS_PER_SEC));
	say("times", times(&used));
	say("times.tms_utime", used.tms_utime + used.tms_stime + used.tms_cutime + used.tms_cstime);
	SAY("getrusage", getrusage(RUSAGE_SELF, &usage), ns_of(usage.ru_utime) + ns_of(usage.ru_stime));
	SAY("wait3", wait3(&status, 0, &usage), ns_of(usage.ru_utime));
	SAY("wait4", wait4(1, &status, 0, &usage), ns_of(usage.ru_stime));
	SAY("sysinfo", sysinfo(&info), info.uptime);
	say("clock_settime", clock_settime(CLOCK_REALTIME, &span));
	say("settimeofday", settimeofday(&(struct timeval){ 1, 0 }, NULL));
	say("adjtime", adjtime(&(struct timeval){ 1, 0 }, NULL));
}

static void sleeps(void)
{
	struct timespec rest, until = moment(CLOCK_BOOTTIME);

	SAY("nanosleep", nanosleep(&span, &rest), ns(rest));
	SAY("nanosleep.wrong", nanosleep(&(struct timespec){ 1, -1 }, NULL), 0);
	SAY("nanosleep.endless", nanosleep(&(struct timespec){ INT64_MAX, 0 }, NULL), 0);
	SAY("clock_nanosleep", clock_nanosleep(CLOCK_REALTIME, 0, &span, &rest), ns(rest));
	SAY("clock_nanosleep.moment", clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, NULL), 0);
	SAY("clock_nanosleep.processor", clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, &span, NULL), 0);
	SAY("usleep", usleep(1500000), 0);
	say("sleep", sleep(2));
	SAY("thrd_sleep", thrd_sleep(&span, &rest), ns(rest));
}

static void waits(void)
{
	struct timeval timeout = { 1, 500000 };
	struct timespec until = moment(CLOCK_REALTIME);
	struct epoll_event event;
	struct sembuf operation = { 0 };
	const struct aiocb *list[1] = { NULL };
	struct pollfd file = { .fd = -1 };
	sigset_t set;
	char byte = 0;

	sigemptyset(&set);
	SAY("select", select(0, NULL, NULL, NULL, &timeout), ns_of(timeout));
	SAY("pselect", pselect(0, NULL, NULL, NULL, &span, NULL), 0);
	SAY("poll", poll(&file, 1, 1500), 0);
	SAY("poll.endless", poll(&file, 1, -1), 0);
	SAY("ppoll", ppoll(&file, 1, &span, NULL), 0);
	SAY("__poll_chk", __poll_chk(&file, 1, 1500, sizeof(file)), 0);
	SAY("__ppoll_chk", __ppoll_chk(&file, 1, &span, NULL, sizeof(file)), 0);
	SAY("epoll_wait", epoll_wait(0, &event, 1, 1500), 0);
	SAY("epoll_wait.endless", epoll_wait(0, &event, 1, -1), 0);
	SAY("epoll_pwait", epoll_pwait(0, &event, 1, 1500, NULL), 0);
	SAY("epoll_pwait2", epoll_pwait2(0, &event, 1, &span, NULL), 0);
	SAY("sigtimedwait", sigtimedwait(&set, NULL, &span), 0);
	SAY("semtimedop", semtimedop(0, &operation, 1, &span), 0);
	SAY("mq_timedsend", mq_timedsend(0, &byte, 1, 0, &until), 0);
	SAY("mq_timedreceive", mq_timedreceive(0, &byte, 1, NULL, &until), 0);
	SAY("aio_suspend", aio_suspend(list, 1, &span), 0);
}

static void timers(void)
{
	struct itimerval interval = { { 1, 0 }, { 1, 500000 } }, before;
	struct itimerspec timer = { { 1, 0 }, span }, old, off = { 0 };
	struct itimerspec until = { .it_value = moment(CLOCK_BOOTTIME) };
	timer_t made;
	int file = timerfd_create(CLOCK_BOOTTIME, 0);

	say("alarm", alarm(2));
	say("ualarm", ualarm(500000, 250000));
	SAY("setitimer", setitimer(ITIMER_REAL, &interval, &before), ns_of(before.it_value) + ns_of(before.it_interval));
	SAY("getitimer", getitimer(ITIMER_REAL, &before), ns_of(before.it_value));
	timer_create(CLOCK_BOOTTIME, NULL, &made);
	SAY("timer_settime", timer_settime(made, 0, &timer, &old), ns(old.it_value));
	SAY("timer_settime.moment", timer_settime(made, TIMER_ABSTIME, &until, NULL), 0);
	SAY("timer_settime.off", timer_settime(made, TIMER_ABSTIME, &off, NULL), 0);
	until.it_value = (struct timespec){ 1, 0 };
	SAY("timer_settime.past", timer_settime(made, TIMER_ABSTIME, &until, NULL), 0);
	until.it_value = moment(CLOCK_BOOTTIME);
	SAY("timer_gettime", timer_gettime(made, &old), ns(old.it_value));
	say("timer_delete", timer_delete(made));
	SAY("timerfd_settime", timerfd_settime(file, 0, &timer, &old), ns(old.it_interval));
	SAY("timerfd_settime.moment", timerfd_settime(file, TFD_TIMER_ABSTIME, &until, NULL), 0);
	SAY("timerfd_gettime", timerfd_gettime(file, &old), ns(old.it_value));
}

static void threads(void)
{
	struct timespec day = moment(CLOCK_REALTIME), monotonic = moment(CLOCK_MONOTONIC);
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
	pthread_cond_t plain = PTHREAD_COND_INITIALIZER, timed;
	pthread_condattr_t attributes;
	sem_t semaphore;
	cnd_t condition;
	mtx_t simple;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&timed, &attributes);
	SAY("pthread_cond_timedwait", pthread_cond_timedwait(&plain, &mutex, &day), 0);
	SAY("pthread_cond_timedwait.monotonic", pthread_cond_timedwait(&timed, &mutex, &monotonic), 0);
	SAY("pthread_cond_clockwait", pthread_cond_clockwait(&plain, &mutex, CLOCK_MONOTONIC, &monotonic), 0);
	SAY("pthread_mutex_timedlock", pthread_mutex_timedlock(&mutex, &day), 0);
	SAY("pthread_mutex_clocklock", pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &monotonic), 0);
	SAY("pthread_rwlock_timedrdlock", pthread_rwlock_timedrdlock(&lock, &day), 0);
	SAY("pthread_rwlock_clockrdlock", pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &monotonic), 0);
	SAY("pthread_rwlock_timedwrlock", pthread_rwlock_timedwrlock(&lock, &day), 0);
	SAY("pthread_rwlock_clockwrlock", pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &monotonic), 0);
	SAY("pthread_timedjoin_np", pthread_timedjoin_np(pthread_self(), NULL, &day), 0);
	SAY("pthread_clockjoin_np", pthread_clockjoin_np(pthread_self(), NULL, CLOCK_MONOTONIC, &monotonic), 0);
	SAY("sem_timedwait", sem_timedwait(&semaphore, &day), 0);
	SAY("sem_clockwait", sem_clockwait(&semaphore, CLOCK_MONOTONIC, &monotonic), 0);
	SAY("cnd_timedwait", cnd_timedwait(&condition, &simple, &day), 0);
	SAY("mtx_timedlock", mtx_timedlock(&simple, &day), 0);
}

/* Sets an option to a value and reads it. */
static void option(const char *name, int level, int number, int64_t value, socklen_t length)
{
	int64_t got = 0;

	setsockopt(0, level, number, &value, length);
	getsockopt(0, level, number, &got, &length);
	say(name, got);
}

/* When the message came by that way of telling it. */
static int64_t arrival(int type)
{
	char room[CMSG_SPACE(3 * sizeof(struct timespec))] = { 0 };
	struct msghdr message = { .msg_control = room, .msg_controllen = sizeof(room) };
	struct timespec time;

	recvmsg(0, &message, type);
	memcpy(&time, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(time));
	return type == SO_TIMESTAMP ? time.tv_sec * NS + time.tv_nsec * 1000LL : ns(time);
}

static void sockets(void)
{
	struct timeval timeout = { 1, 500000 };
	struct linger linger = { 1, 2 };
	struct tcp_info info;
	struct mmsghdr batch = { 0 };
	char room[CMSG_SPACE(3 * sizeof(struct timespec))] = { 0 };
	struct timespec wait = span, time;
	struct timeval asked;
	socklen_t length = sizeof(timeout);

	setsockopt(0, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	SAY("SO_RCVTIMEO", getsockopt(0, SOL_SOCKET, SO_RCVTIMEO, &timeout, &length), ns_of(timeout));
	length = sizeof(linger);
	setsockopt(0, SOL_SOCKET, SO_LINGER, &linger, length);
	SAY("SO_LINGER", getsockopt(0, SOL_SOCKET, SO_LINGER, &linger, &length), linger.l_linger);
	option("SO_MAX_PACING_RATE", SOL_SOCKET, SO_MAX_PACING_RATE, 1000000, 4);
	option("SO_MAX_PACING_RATE.wide", SOL_SOCKET, SO_MAX_PACING_RATE, 1000000, 8);
	option("SO_MAX_PACING_RATE.none", SOL_SOCKET, SO_MAX_PACING_RATE, UINT32_MAX, 4);
	option("TCP_USER_TIMEOUT", IPPROTO_TCP, TCP_USER_TIMEOUT, 1500, 4);
	option("TCP_KEEPIDLE", IPPROTO_TCP, TCP_KEEPIDLE, 30000, 4);
	option("TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY, 1, 4);
	length = sizeof(info);
	SAY("TCP_INFO", getsockopt(0, IPPROTO_TCP, TCP_INFO, &info, &length), info.tcpi_rtt);
	say("TCP_INFO.tcpi_delivery_rate", info.tcpi_delivery_rate);
	say("TCP_INFO.tcpi_pacing_rate", info.tcpi_pacing_rate);
	say("TCP_INFO.tcpi_snd_cwnd", info.tcpi_snd_cwnd);
	say("SO_TIMESTAMP", arrival(SO_TIMESTAMP));
	say("SO_TIMESTAMPNS", arrival(SO_TIMESTAMPNS));
	say("SO_TIMESTAMPING", arrival(SO_TIMESTAMPING));
	batch.msg_hdr.msg_control = room;
	batch.msg_hdr.msg_controllen = sizeof(room);
	SAY("recvmmsg", recvmmsg(0, &batch, 1, SO_TIMESTAMPNS, &wait), ns(wait));
	memcpy(&time, CMSG_DATA(CMSG_FIRSTHDR(&batch.msg_hdr)), sizeof(time));
	say("recvmmsg.arrival", ns(time));
	SAY("SIOCGSTAMP", ioctl(0, SIOCGSTAMP_OLD, &asked), ns_of(asked));
	SAY("SIOCGSTAMPNS", ioctl(0, SIOCGSTAMPNS_OLD, &time), ns(time));
}

static void raw(void)
{
	struct timespec day = moment(CLOCK_REALTIME), monotonic = moment(CLOCK_MONOTONIC), now;
	int word = 0;

	SAY("SYS_clock_gettime", syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now), ns(now));
	SAY("FUTEX_WAIT", syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &span), 0);
	SAY("FUTEX_WAIT_BITSET", syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &monotonic, NULL, -1), 0);
	SAY("FUTEX_WAIT_BITSET.realtime",
	    syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, &day, NULL, -1), 0);
	SAY("FUTEX_LOCK_PI", syscall(SYS_futex, &word, FUTEX_LOCK_PI, 0, &day), 0);
	SAY("SYS_futex_waitv", syscall(FUTEX_WAITV, NULL, 0, 0, &monotonic, CLOCK_MONOTONIC), 0);
	SAY("SYS_futex_wait", syscall(FUTEX_WAIT_NEW, &word, 0L, 0L, 0, &day, CLOCK_REALTIME), 0);
	SAY("SYS_pselect6", syscall(SYS_pselect6, 0, NULL, NULL, NULL, &span, NULL), 0);
	SAY("SYS_clock_nanosleep", syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &span, NULL), errno);
	SAY("SYS_ppoll", syscall(SYS_ppoll, NULL, 0, &span, NULL, 8), 0);
}

int main(void)
{
	clocks();
	sleeps();
	waits();
	timers();
	threads();
	sockets();
	raw();
	return 0;
}
