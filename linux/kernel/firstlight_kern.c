// SPDX-License-Identifier: GPL-2.0
/*
 * A network in virtual time: Ethernet devices fl0, fl1, ... whose packets an engine in the same process carries.
 *
 * One time-travel event at engine->next() makes the engine run when the kernel's clock reaches that time. Packets are
 * handed over, not copied. All devices have the same MAC address and do not use ARP, so that every device accepts a
 * frame that the engine delivers to it. The clock does not advance while this code runs.
 */
#include <linux/etherdevice.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/miscdevice.h>
#include <linux/moduleparam.h>
#include <linux/netdevice.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/tcp.h>
#include <linux/time-internal.h>
#include <linux/uaccess.h>
#include <net/checksum.h>
#include <net/firstlight_stamps.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/tcp.h>
#include <as-layout.h>
#include "firstlight_card.h"
#include "firstlight_cores.h"
#include "firstlight_user.h"

#define MESSAGE_MAX 65536

/* Constants of TCP, for all namespaces, that a run may set on the command line: firstlight.timeout_init_ms=10. */
unsigned int firstlight_timeout_init_ms = MSEC_PER_SEC;
module_param_named(timeout_init_ms, firstlight_timeout_init_ms, uint, 0444);
unsigned int firstlight_delack_max_ms = MSEC_PER_SEC / 5;
module_param_named(delack_max_ms, firstlight_delack_max_ms, uint, 0444);
unsigned int firstlight_min_window = 2;
module_param_named(min_window, firstlight_min_window, uint, 0444);
unsigned int firstlight_max_window = ~0U;
module_param_named(max_window, firstlight_max_window, uint, 0444);

/* random.c */
void random_begin_anew(void);

static struct net_device **devices;

/* The engine is running. One rearm() follows. */
static bool engine_runs;

/* Headers of a frame that begins at skb->data: header offsets of the sk_buff may be unset. */
static struct ethhdr *eth_hdr_of(const struct sk_buff *skb)
{
	return (struct ethhdr *)skb->data;
}

static struct iphdr *ip_hdr_of(const struct sk_buff *skb)
{
	return (struct iphdr *)(skb->data + ETH_HLEN);
}

static struct ipv6hdr *ipv6_hdr_of(const struct sk_buff *skb)
{
	return (struct ipv6hdr *)(skb->data + ETH_HLEN);
}

/*
 * Bytes before the header of the transport, if the headers of Ethernet and IP are contiguous so far; 0 for a frame that
 * carries neither IPv4 nor IPv6. Extension headers of IPv6 count as the transport's.
 */
static unsigned int before_transport(const struct sk_buff *skb)
{
	if (skb_headlen(skb) >= ETH_HLEN + sizeof(struct iphdr) && eth_hdr_of(skb)->h_proto == htons(ETH_P_IP))
		return ETH_HLEN + ip_hdr_of(skb)->ihl * 4;
	if (skb_headlen(skb) >= ETH_HLEN + sizeof(struct ipv6hdr) && eth_hdr_of(skb)->h_proto == htons(ETH_P_IPV6))
		return ETH_HLEN + sizeof(struct ipv6hdr);
	return 0;
}

static bool is_ipv6(const struct sk_buff *skb)
{
	return eth_hdr_of(skb)->h_proto == htons(ETH_P_IPV6);
}

/* Whether a TCP header follows the one of IP. */
static bool is_tcp(const struct sk_buff *skb)
{
	if (is_ipv6(skb))
		return ipv6_hdr_of(skb)->nexthdr == IPPROTO_TCP;
	return ip_hdr_of(skb)->protocol == IPPROTO_TCP && !(ip_hdr_of(skb)->frag_off & htons(IP_OFFSET));
}

static struct tcphdr *tcp_hdr_of(const struct sk_buff *skb)
{
	return (struct tcphdr *)(skb->data + before_transport(skb));
}

static void on_due(struct time_travel_event *event);
static struct time_travel_event due = { .fn = on_due };

/* Moves the event to the time at which the engine has work next. */
static void rearm(void)
{
	unsigned long long next = firstlight_engine->next();
	unsigned long long now = time_travel_now();

	if (due.pending) {
		if (due.time == next)
			return;
		time_travel_del_event(&due);
	}
	if (next != FIRSTLIGHT_NEVER)
		time_travel_add_event_rel(&due, next > now ? next - now : 0);
}

static void on_due(struct time_travel_event *event)
{
	engine_runs = true;
	firstlight_engine->run(time_travel_now());
	engine_runs = false;
	rearm();
}

/* ---- packets to the engine ---- */

/*
 * Makes the headers of IP, TCP and UDP contiguous. They are in packets of the stack itself: then nothing is copied, and
 * the payload is not moved. Returns false when memory is short.
 */
static bool headers_together(struct sk_buff *skb)
{
	unsigned int needed = ETH_HLEN + sizeof(struct ipv6hdr);

	/* No packet of TCP is shorter than an IPv6 header. */
	if (!pskb_may_pull(skb, min(skb->len, needed)))
		return false;
	needed = before_transport(skb);
	if (!needed)
		return true;
	needed += sizeof(struct tcphdr);
	if (!pskb_may_pull(skb, min(skb->len, needed)))
		return false;
	if (!is_tcp(skb) || skb->len < needed)
		return true;
	needed += tcp_hdr_of(skb)->doff * 4 - sizeof(struct tcphdr);
	return pskb_may_pull(skb, min(skb->len, needed));
}

static unsigned int number_of(const struct net_device *device)
{
	return ((struct firstlight_device *)netdev_priv(device))->number;
}

bool firstlight_transmit(struct net_device *device, struct sk_buff *skb)
{
	unsigned long flags;
	bool room;

	local_irq_save(flags);
	engine_runs = true;
	room = firstlight_engine->send(number_of(device), skb, skb->data, skb_headlen(skb), skb->len,
				       time_travel_now());
	engine_runs = false;
	rearm();
	local_irq_restore(flags);
	return room;
}

static netdev_tx_t device_send(struct sk_buff *skb, struct net_device *device)
{

	/* Network layers send in softirqs only, never within deliver(), drop(), sent() or room(). */
	if (WARN_ON_ONCE(engine_runs) || !headers_together(skb)) {
		device->stats.tx_dropped++;
		dev_kfree_skb_any(skb);
		return NETDEV_TX_OK;
	}
	device->stats.tx_packets++;
	device->stats.tx_bytes += skb->len;
	skb_tx_timestamp(skb);

	if (firstlight_has_cores)
		firstlight_card_send(device, skb);
	else if (!firstlight_transmit(device, skb))
		netif_stop_queue(device);
	return NETDEV_TX_OK;
}

/* ---- packets from the engine ---- */

/*
 * Sets ECN-Echo. While the checksum is incomplete, its field has the sum of the pseudo header only, which does not
 * include the flags.
 */
static void mark_ece(struct sk_buff *skb, struct tcphdr *tcp)
{
	__be16 *flags = (__be16 *)tcp + 6;
	__be16 before = *flags;

	tcp->ece = 1;
	if (skb->ip_summed != CHECKSUM_PARTIAL)
		csum_replace2(&tcp->check, before, *flags);
}

/* Marks an IP packet; other packets stay as they are. Returns false when memory is short. */
static bool mark(struct sk_buff *skb, unsigned int marks)
{
	unsigned int headers = before_transport(skb);
	bool tcp;

	if (!headers)
		return true;
	tcp = is_tcp(skb) && skb_headlen(skb) >= headers + sizeof(struct tcphdr);
	if (tcp)
		headers += sizeof(struct tcphdr);
	if (skb_ensure_writable(skb, headers))
		return false;

	if (marks & FIRSTLIGHT_CE && is_ipv6(skb))
		IP6_ECN_set_ce(skb, ipv6_hdr_of(skb));
	else if (marks & FIRSTLIGHT_CE)
		IP_ECN_set_ce(ip_hdr_of(skb));
	if (marks & FIRSTLIGHT_ECE && tcp)
		mark_ece(skb, tcp_hdr_of(skb));
	return true;
}

static void host_deliver(unsigned int number, void *packet, unsigned int marks)
{
	struct sk_buff *skb = packet;
	struct net_device *device;

	if (WARN_ON_ONCE(number >= firstlight_engine->devices)) {
		dev_kfree_skb_any(skb);
		return;
	}
	device = devices[number];
	/* A card puts packets into memory of the receiver's: its stack may append to any. */
	if (skb_unclone_keeptruesize(skb, GFP_ATOMIC) || (marks && !mark(skb, marks)) ||
	    (firstlight_has_cores && firstlight_card_is_full(device))) {
		device->stats.rx_dropped++;
		dev_kfree_skb_any(skb);
		return;
	}
	device->stats.rx_packets++;
	device->stats.rx_bytes += skb->len;
	if (firstlight_has_cores)
		firstlight_card_arrived(device, skb);
	else
		dev_forward_skb(device, skb);
}

/* The interfaces' timestamps of a packet: the first goes into its TCP option, the other is the card's own. */
static void host_stamp(void *packet, unsigned int sent, unsigned int received)
{
	struct sk_buff *skb = packet;
	struct tcphdr *tcp;
	u8 *option;

	if (skb_unclone_keeptruesize(skb, GFP_ATOMIC))
		return; /* host_deliver() will not succeed either, and counts the loss */
	tcp = tcp_hdr_of(skb);
	option = firstlight_find_stamps(tcp);
	if (WARN_ON_ONCE(!option))
		return;
	if (skb->ip_summed != CHECKSUM_PARTIAL)
		csum_replace4(&tcp->check, get_unaligned((__be32 *)option), htonl(sent));
	put_unaligned_be32(sent, option);
	skb_hwtstamps(skb)->hwtstamp = ns_to_ktime(received);
}

static void host_drop(void *packet)
{
	dev_kfree_skb_any(packet);
}

static void host_sent(void *packet)
{
	skb_orphan(packet);
}

/* The stack sends later, in a softirq. */
static void host_room(unsigned int number)
{
	if (WARN_ON_ONCE(number >= firstlight_engine->devices))
		return;
	if (firstlight_has_cores)
		firstlight_card_room(devices[number]);
	else
		netif_wake_queue(devices[number]);
}

static void host_processors(unsigned int number, struct firstlight_processors *done)
{
	*done = (struct firstlight_processors){};
	if (firstlight_has_cores && !WARN_ON_ONCE(number >= firstlight_engine->devices))
		*done = firstlight_processors_of(devices[number]);
}

const struct firstlight_host firstlight_host = {
	.abi = FIRSTLIGHT_ABI,
	.stamp = host_stamp,
	.deliver = host_deliver,
	.drop = host_drop,
	.sent = host_sent,
	.room = host_room,
	.processors = host_processors,
	.log = firstlight_say,
};

/* ---- what programs write ---- */

static struct firstlight_connection connection_of(const struct sock *sk)
{
	const struct inet_sock *inet = inet_sk(sk);
	struct firstlight_connection connection = {
		.from_port = ntohs(inet->inet_sport),
		.to_port = ntohs(inet->inet_dport),
	};

	memcpy(connection.from, &inet->inet_saddr, sizeof(connection.from));
	memcpy(connection.to, &inet->inet_daddr, sizeof(connection.to));
	return connection;
}

static void report_write(const struct sock *sk, u32 sequence, long long bytes)
{
	struct firstlight_connection connection = connection_of(sk);
	unsigned long flags;

	local_irq_save(flags);
	firstlight_engine->wrote(&connection, sequence, bytes);
	local_irq_restore(flags);
}

/* Reports a write of TCP when it begins, also if the program then waits for room in the socket. */
static int reporting_sendmsg(struct sock *sk, struct msghdr *message, size_t size)
{
	u32 sequence = READ_ONCE(tcp_sk(sk)->write_seq);
	long long lacking;
	int taken;

	report_write(sk, sequence, size);
	taken = tcp_sendmsg(sk, message, size);
	lacking = (long long)size - max(taken, 0);
	if (lacking)
		report_write(sk, sequence, -lacking);
	return taken;
}

/* TCP calls this when a connection is closed or reset. */
static void reporting_unhash(struct sock *sk)
{
	struct firstlight_connection connection = connection_of(sk);
	unsigned long flags;

	local_irq_save(flags);
	firstlight_engine->closed(&connection);
	local_irq_restore(flags);
	inet_unhash(sk);
}

static void report_writes(void)
{
	if (!firstlight_engine->wrote)
		return;
	tcp_prot.sendmsg = reporting_sendmsg;
	tcp_prot.unhash = reporting_unhash;
}

/* ---- messages to the engine ---- */

/* The first message begins the run, and the run's randomness: what the kernel drew to set hosts up changes nothing. */
static void begin_randomness(void)
{
	static bool begun;

	if (begun)
		return;
	begun = true;
	firstlight_reseed();
	random_begin_anew();
}

static ssize_t message_write(struct file *file, const char __user *from, size_t length, loff_t *position)
{
	unsigned char *message;
	unsigned long flags;
	int error;

	if (length > MESSAGE_MAX)
		return -EMSGSIZE;
	message = memdup_user(from, length);
	if (IS_ERR(message))
		return PTR_ERR(message);

	begin_randomness();
	local_irq_save(flags);
	engine_runs = true;
	error = firstlight_engine->control(message, length, time_travel_now());
	engine_runs = false;
	rearm();
	local_irq_restore(flags);

	kfree(message);
	return error ? error : length;
}

static const struct file_operations message_operations = {
	.owner = THIS_MODULE,
	.write = message_write,
};

static struct miscdevice message_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "firstlight",
	.fops = &message_operations,
	.mode = 0200,
};

int firstlight_whereabouts(char *line, unsigned long size)
{
	/* The first word of an entry is the task in all versions; in older ones "current" reads the stack pointer. */
	struct task_struct *task = *(struct task_struct **)&cpu_tasks[0];

	return scnprintf(line, size, "firstlight: at %llu ns the processor runs '%s' (pid %d)\n", time_travel_now(),
			 task ? task->comm : "boot", task ? task->pid : 0);
}

/* ---- set-up ---- */

static const struct net_device_ops device_operations = {
	.ndo_open = firstlight_card_open,
	.ndo_stop = firstlight_card_stop,
	.ndo_start_xmit = device_send,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
};

static void set_up_device(struct net_device *device)
{
	static const u8 address[ETH_ALEN] = { 0x02, 0, 0, 0, 0, 0x01 };

	ether_setup(device);
	eth_hw_addr_set(device, address);
	device->netdev_ops = &device_operations;
	device->needs_free_netdev = true;
	device->lltx = true;
	device->flags |= IFF_NOARP;
	device->min_mtu = ETH_MIN_MTU;
	device->max_mtu = ETH_MAX_MTU;
	/* A packet may have fragments; checksums are not computed. No segmentation offload: the engine needs packets. */
	device->hw_features = NETIF_F_SG | NETIF_F_HW_CSUM;
	device->features |= device->hw_features | NETIF_F_HIGHDMA | NETIF_F_FRAGLIST;
}

static int __init add_device(unsigned int number)
{
	struct net_device *device = alloc_netdev(sizeof(struct firstlight_device), "fl%d", NET_NAME_ENUM, set_up_device);

	if (!device)
		return -ENOMEM;
	((struct firstlight_device *)netdev_priv(device))->number = number;
	devices[number] = device;
	if (firstlight_has_cores)
		firstlight_card_init(device);
	return register_netdev(device);
}

static int __init firstlight_init(void)
{
	unsigned int i;

	if (!firstlight_engine)
		return 0;
	if (time_travel_mode != TT_MODE_INFCPU)
		firstlight_fail("the kernel must be started with time-travel=inf-cpu");
	devices = kvcalloc(firstlight_engine->devices, sizeof(*devices), GFP_KERNEL);
	if (!devices)
		firstlight_fail("no memory for the devices: give the kernel more (mem=)");
	if (firstlight_cores_init())
		firstlight_fail("no memory for the hosts' processors: give the kernel more (mem=)");
	for (i = 0; i < firstlight_engine->devices; i++)
		if (add_device(i))
			firstlight_fail("a device cannot be made: give the kernel more memory (mem=)");
	if (misc_register(&message_device))
		firstlight_fail("/dev/firstlight cannot be made");
	report_writes();
	return 0;
}
device_initcall(firstlight_init);
