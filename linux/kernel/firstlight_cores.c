// SPDX-License-Identifier: GPL-2.0
/*
 * Time of the hosts' processors, off unless firstlight.cores is set.
 *
 * Each network namespace has as many processors as firstlight.cores says. Work is given to one of them and takes
 * virtual time there, in the order in which it comes. Other namespaces, and what the kernel does otherwise, go on: a
 * program waits for its system call, a packet for its turn. What a program computes takes no time.
 *
 * The interrupts of a card and the packets that it receives are work of the first processor; all else goes to the one
 * that is free first. Costs are counted in picoseconds, and what waits for them goes on in the next whole nanosecond.
 */
#include <linux/etherdevice.h>
#include <linux/math64.h>
#include <linux/moduleparam.h>
#include <linux/nsproxy.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <asm/delay.h>
#include <asm/unistd.h>
#include "firstlight_card.h"
#include "firstlight_cores.h"

#define CORES_MAX 64
#define PS_PER_NS 1000
/* Reads of the clock make a program wait only when so much work is ahead of it, in nanoseconds. */
#define CLOCK_PATIENCE 1000
/* Calls that ask what is ready, and take no time, where hosts have no processors. */
#define FREE_POLLS 16384
/* Packets that a card holds for its processor in each direction. */
#define RING 1024
/* Packets that the processor takes from a card at once. */
#define BATCH NAPI_POLL_WEIGHT

bool firstlight_has_cores;

static unsigned int cores;
module_param(cores, uint, 0444);
/* What each of these takes, in picoseconds. */
static unsigned long syscall_ps, clock_ps, wakeup_ps, idle_ps, copy_ps, interrupt_ps, packet_ps, byte_ps, send_ps;
static unsigned long moderation_ps;
module_param(syscall_ps, ulong, 0444);
module_param(clock_ps, ulong, 0444);
module_param(wakeup_ps, ulong, 0444);
module_param(idle_ps, ulong, 0444);
module_param(copy_ps, ulong, 0444);
module_param(interrupt_ps, ulong, 0444);
module_param(packet_ps, ulong, 0444);
module_param(byte_ps, ulong, 0444);
module_param(send_ps, ulong, 0444);
module_param(moderation_ps, ulong, 0444);

/* When each processor of a namespace has done its work, in picoseconds, and what all have done. */
struct firstlight_core_times {
	u64 free[CORES_MAX];
	struct firstlight_processors done;
};

static unsigned int core_times_id __read_mostly;
static struct pernet_operations core_times_operations = {
	.id = &core_times_id,
	.size = sizeof(struct firstlight_core_times),
};

static struct firstlight_core_times *core_times(const struct net *net)
{
	return net_generic(net, core_times_id);
}

static u64 *free_first(struct firstlight_core_times *times)
{
	unsigned int i, first = 0;

	for (i = 1; i < cores; i++)
		if (times->free[i] < times->free[first])
			first = i;
	return &times->free[first];
}

/* A thread that runs goes on where it was, if processors have idle states: on one whose work has just been done. */
static u64 *of_running(struct firstlight_core_times *times)
{
	unsigned int i;

	for (i = 0; idle_ps && i < cores; i++)
		if (DIV_ROUND_UP_ULL(times->free[i], PS_PER_NS) == time_travel_now())
			return &times->free[i];
	return free_first(times);
}

/* Gives work to a processor. Returns the nanosecond at which it is done. */
static u64 work(struct firstlight_core_times *times, u64 *free, u64 picoseconds)
{
	times->done.busy += picoseconds;
	*free = max(*free, time_travel_now() * PS_PER_NS) + picoseconds;
	return DIV_ROUND_UP_ULL(*free, PS_PER_NS);
}

/* An interrupt or a thread that becomes ready wakes a processor: one without work leaves the idle state first. */
static void wake(u64 *free)
{
	u64 now = time_travel_now();

	if (DIV_ROUND_UP_ULL(*free, PS_PER_NS) < now)
		*free = now * PS_PER_NS + idle_ps;
}

static void at(struct time_travel_event *event, u64 nanosecond)
{
	u64 now = time_travel_now();

	time_travel_add_event_rel(event, nanosecond > now ? nanosecond - now : 0);
}

/* ---- system calls ---- */

struct waiting_task {
	struct time_travel_event event;
	struct task_struct *task;
	bool over;
};

static void on_over(struct time_travel_event *event)
{
	struct waiting_task *waiting = container_of(event, struct waiting_task, event);

	waiting->over = true;
	wake_up_process(waiting->task);
}

static void wait_until(u64 nanosecond)
{
	struct waiting_task waiting = { .event.fn = on_over, .task = current };

	if (nanosecond <= time_travel_now())
		return;
	at(&waiting.event, nanosecond);
	for (;;) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		if (READ_ONCE(waiting.over))
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
}

/* The first process sets the hosts up and has no processor; nor has the namespace that it begins in. */
static struct firstlight_core_times *times_of_caller(void)
{
	const struct net *net = current->nsproxy ? current->nsproxy->net_ns : NULL;

	if (!net || net == &init_net || current->tgid == 1)
		return NULL;
	return core_times(net);
}

/* What a real machine answers without a system call. */
static bool reads_clock(int number)
{
	return number == __NR_clock_gettime || number == __NR_gettimeofday || number == __NR_time ||
	       number == __NR_getcpu;
}

void __firstlight_call_begins(struct firstlight_call *call, int number)
{
	u64 done;

	call->cores = times_of_caller();
	if (!call->cores)
		return;
	if (reads_clock(number)) {
		done = work(call->cores, free_first(call->cores), clock_ps);
		if (done > time_travel_now() + CLOCK_PATIENCE)
			wait_until(done);
		call->cores = NULL; /* It takes nothing else. */
		return;
	}
	wait_until(work(call->cores, of_running(call->cores), syscall_ps));
	call->switches = current->nvcsw;
	call->copied = current->thread.copied;
}

void __firstlight_call_ends(const struct firstlight_call *call)
{
	u64 wakeups = current->nvcsw - call->switches;
	u64 copied = current->thread.copied - call->copied;
	u64 picoseconds = wakeups * wakeup_ps + copied * copy_ps;
	u64 *free = wakeups ? free_first(call->cores) : of_running(call->cores);

	if (!picoseconds && !(wakeups && idle_ps))
		return;
	if (wakeups)
		wake(free);
	wait_until(work(call->cores, free, picoseconds));
}

unsigned int firstlight_clock_reads(void)
{
	struct firstlight_core_times *times = firstlight_has_cores ? times_of_caller() : NULL;
	u64 now = time_travel_now() * PS_PER_NS, free;

	if (!times || !clock_ps)
		return UINT_MAX;
	free = max(*free_first(times), now);
	return div64_ul(now + CLOCK_PATIENCE * PS_PER_NS - min(free, now + CLOCK_PATIENCE * PS_PER_NS), clock_ps);
}

void firstlight_clock_was_read(unsigned int reads)
{
	struct firstlight_core_times *times = firstlight_has_cores && reads ? times_of_caller() : NULL;

	for (; times && reads; reads--)
		work(times, free_first(times), clock_ps);
}

/* ---- programs that poll ---- */

static bool asks_what_is_ready(int number)
{
	switch (number) {
	case __NR_poll:
	case __NR_ppoll:
	case __NR_select:
	case __NR_pselect6:
	case __NR_epoll_wait:
	case __NR_epoll_pwait:
	case __NR_epoll_pwait2:
		return true;
	default:
		return false;
	}
}

/*
 * Whether a read of the clock is one of those that take time in the end, so that a program that only waits for the time
 * to pass does not stop it. What a call reads on its way that makes a socket send is not: the socket reads the clock
 * for each packet, and a fast program sends hundreds at one moment.
 */
bool firstlight_asks_for_time(void)
{
	if (!current->mm)
		return true;
	switch (UPT_SYSCALL_NR(&current->thread.regs.regs)) {
	case __NR_read:
	case __NR_readv:
	case __NR_recvfrom:
	case __NR_recvmsg:
	case __NR_recvmmsg:
	case __NR_write:
	case __NR_writev:
	case __NR_sendto:
	case __NR_sendmsg:
	case __NR_sendmmsg:
	case __NR_sendfile:
	case __NR_splice:
	case __NR_setsockopt:
	case __NR_connect:
	case __NR_shutdown:
	case __NR_close:
		return false;
	default:
		return true;
	}
}

/* Of such calls since the program has slept, so many take no time, and later ones up to 1 us. */
void __firstlight_call_polls(int number)
{
	struct thread_struct *thread = &current->thread;

	if (!asks_what_is_ready(number))
		return;
	if (thread->polls_since != current->nvcsw) {
		thread->polls_since = current->nvcsw;
		thread->polls = 0;
	}
	if (++thread->polls <= FREE_POLLS)
		return;
	time_travel_ndelay(min((thread->polls - FREE_POLLS) / 16 + 1, 1000UL));
	schedule();
}

bool firstlight_call_took_time(const struct firstlight_call *call)
{
	return call->cores && syscall_ps >= PS_PER_NS;
}

/* ---- packets that arrive ---- */

static struct firstlight_card *card_of(struct net_device *device)
{
	return &((struct firstlight_device *)netdev_priv(device))->card;
}

/* What interrupts make a host do is work of the first processor. */
static u64 work_of_card(const struct firstlight_card *card, u64 picoseconds)
{
	struct firstlight_core_times *times = core_times(dev_net(card->device));

	times->done.card += picoseconds;
	return work(times, &times->free[0], picoseconds);
}

static void interrupt(struct firstlight_card *card)
{
	struct firstlight_core_times *times = core_times(dev_net(card->device));

	card->receiving = CARD_INTERRUPTED;
	times->done.interrupts++;
	wake(&times->free[0]);
	at(&card->receive, work_of_card(card, interrupt_ps));
}

/* Takes packets that have arrived; without any, the card waits for the next one. */
static void take_batch(struct firstlight_card *card)
{
	u64 picoseconds = 0;
	struct sk_buff *skb;

	card->receiving = CARD_WAITS;
	while (skb_queue_len(&card->batch) < BATCH && (skb = __skb_dequeue(&card->arrived))) {
		picoseconds += packet_ps + (u64)skb->len * byte_ps;
		__skb_queue_tail(&card->batch, skb);
	}
	if (skb_queue_empty(&card->batch))
		return;
	card->receiving = CARD_WORKS;
	at(&card->receive, work_of_card(card, picoseconds));
}

static void on_receive(struct time_travel_event *event)
{
	struct firstlight_card *card = container_of(event, struct firstlight_card, receive);

	switch (card->receiving) {
	case CARD_MODERATES:
		interrupt(card);
		break;
	case CARD_INTERRUPTED:
		take_batch(card);
		break;
	case CARD_WORKS:
		napi_schedule(&card->napi);
		break;
	case CARD_WAITS:
		WARN_ON_ONCE(1);
		break;
	}
}

/* The stack gets the batch that the processor has worked on. */
static int card_poll(struct napi_struct *napi, int budget)
{
	struct firstlight_card *card = container_of(napi, struct firstlight_card, napi);
	int count = 0;
	struct sk_buff *skb;

	while ((skb = __skb_dequeue(&card->batch))) {
		count++;
		/* The sender still has what is merged with other packets here. */
		if (skb_unclone(skb, GFP_ATOMIC))
			netif_receive_skb(skb);
		else
			napi_gro_receive(napi, skb);
	}
	napi_complete_done(napi, count);
	take_batch(card);
	return min(count, budget - 1);
}

bool firstlight_card_is_full(struct net_device *device)
{
	return skb_queue_len(&card_of(device)->arrived) >= RING;
}

void firstlight_card_arrived(struct net_device *device, struct sk_buff *skb)
{
	struct firstlight_card *card = card_of(device);

	skb_orphan(skb);
	if (__dev_forward_skb(device, skb) != NET_RX_SUCCESS)
		return;
	__skb_queue_tail(&card->arrived, skb);
	if (card->receiving != CARD_WAITS)
		return;
	if (moderation_ps) {
		card->receiving = CARD_MODERATES;
		at(&card->receive, time_travel_now() + DIV_ROUND_UP_ULL(moderation_ps, PS_PER_NS));
	} else {
		interrupt(card);
	}
}

/* ---- packets that leave ---- */

/* When the processor has worked on a packet. */
static u64 *done_of(struct sk_buff *skb)
{
	return (u64 *)skb->cb;
}

static void on_leave(struct time_travel_event *event)
{
	struct firstlight_card *card = container_of(event, struct firstlight_card, leave);
	struct sk_buff *skb;

	while (!card->full && (skb = skb_peek(&card->leaving)) && *done_of(skb) <= time_travel_now()) {
		__skb_unlink(skb, &card->leaving);
		card->full = !firstlight_transmit(card->device, skb);
	}
	if (card->full)
		netif_stop_queue(card->device);
	else if (skb_queue_len(&card->leaving) < RING)
		netif_wake_queue(card->device);
	if (!card->full && (skb = skb_peek(&card->leaving)))
		at(&card->leave, *done_of(skb));
}

void firstlight_card_send(struct net_device *device, struct sk_buff *skb)
{
	struct firstlight_core_times *times = core_times(dev_net(device));
	struct firstlight_card *card = card_of(device);
	struct sk_buff *last = skb_peek_tail(&card->leaving);
	/* The segments of a burst are one piece of work, as with a card that cuts them. */
	u64 picoseconds = card->amid_burst ? 0 : send_ps;
	u64 done = in_serving_softirq() ? work_of_card(card, picoseconds)
					: work(times, of_running(times), picoseconds);

	card->amid_burst = netdev_xmit_more();
	*done_of(skb) = last ? max(done, *done_of(last)) : done;
	__skb_queue_tail(&card->leaving, skb);
	if (skb_queue_len(&card->leaving) >= RING)
		netif_stop_queue(device);
	if (!card->full && !card->leave.pending)
		at(&card->leave, *done_of(skb));
}

void firstlight_card_room(struct net_device *device)
{
	struct firstlight_card *card = card_of(device);

	card->full = false;
	if (!card->leave.pending)
		at(&card->leave, time_travel_now());
}

struct firstlight_processors firstlight_processors_of(const struct net_device *device)
{
	return core_times(dev_net(device))->done;
}

/* ---- set-up ---- */

void firstlight_card_init(struct net_device *device)
{
	struct firstlight_card *card = card_of(device);

	card->device = device;
	card->receive.fn = on_receive;
	card->leave.fn = on_leave;
	__skb_queue_head_init(&card->arrived);
	__skb_queue_head_init(&card->batch);
	__skb_queue_head_init(&card->leaving);
	netif_napi_add(device, &card->napi, card_poll);
}

int firstlight_card_open(struct net_device *device)
{
	if (!firstlight_has_cores)
		return 0;
	napi_enable(&card_of(device)->napi);
	netif_start_queue(device);
	return 0;
}

int firstlight_card_stop(struct net_device *device)
{
	struct firstlight_card *card = card_of(device);

	if (!firstlight_has_cores)
		return 0;
	netif_stop_queue(device);
	napi_disable(&card->napi);
	time_travel_del_event(&card->receive);
	time_travel_del_event(&card->leave);
	card->receiving = CARD_WAITS;
	__skb_queue_purge(&card->arrived);
	__skb_queue_purge(&card->batch);
	__skb_queue_purge(&card->leaving);
	return 0;
}

int __init firstlight_cores_init(void)
{
	if (!cores)
		return 0;
	cores = min(cores, CORES_MAX);
	firstlight_has_cores = true;
	return register_pernet_subsys(&core_times_operations);
}
