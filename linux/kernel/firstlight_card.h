/* SPDX-License-Identifier: GPL-2.0 */
/* The network card of a host with processors: packets take their time, and interrupts are moderated. */
#ifndef FIRSTLIGHT_CARD_H
#define FIRSTLIGHT_CARD_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/time-internal.h>

/* What a card does with packets that have arrived. */
enum firstlight_receiving {
	CARD_WAITS,	  /* the next packet asks for an interrupt */
	CARD_MODERATES,	  /* the interrupt is delayed */
	CARD_INTERRUPTED, /* the processor works on the interrupt */
	CARD_WORKS,	  /* the processor works on the packets of the batch */
};

struct firstlight_card {
	struct net_device *device;
	struct napi_struct napi;
	enum firstlight_receiving receiving;
	/* When the state above ends. */
	struct time_travel_event receive;
	/* Packets that wait for the processor, and those that it works on. */
	struct sk_buff_head arrived, batch;
	/* Packets that leave when the processor has worked on them, and when the first one does. */
	struct sk_buff_head leaving;
	struct time_travel_event leave;
	/* The engine's interface is full. */
	bool full;
	/* The next packet to send is of the same burst as the last one. */
	bool amid_burst;
};

/* What a device of this driver has of its own. */
struct firstlight_device {
	unsigned int number;
	struct firstlight_card card;
};

int firstlight_cores_init(void);
void firstlight_card_init(struct net_device *device);
int firstlight_card_open(struct net_device *device);
int firstlight_card_stop(struct net_device *device);

/* Whether a packet that arrives now is lost: the processor is too far behind. */
bool firstlight_card_is_full(struct net_device *device);

/* A packet arrives from the network. */
void firstlight_card_arrived(struct net_device *device, struct sk_buff *skb);

/* The stack sends a packet. */
void firstlight_card_send(struct net_device *device, struct sk_buff *skb);

/* The engine's interface has room again. */
void firstlight_card_room(struct net_device *device);

/* Hands a packet to the engine. Returns false when that fills the interface. */
bool firstlight_transmit(struct net_device *device, struct sk_buff *skb);

#endif
