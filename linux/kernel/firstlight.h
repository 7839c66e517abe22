/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface between a kernel in virtual time and the engine, a shared object that the kernel loads.
 *
 * Times are nanoseconds of the kernel's clock. A packet is the kernel's own (an sk_buff), opaque to the engine; from
 * send() on the engine has it until it calls exactly one of deliver() and drop() for it. Every call is made with
 * interrupts off, on the kernel's small stack, and never from within another, but for the engine's calls of the host
 * from within send(), run() and control().
 */
#ifndef FIRSTLIGHT_H
#define FIRSTLIGHT_H

/* Counted up whenever anything below changes. */
#define FIRSTLIGHT_ABI 3

/* What the fabric has marked on a packet, for deliver(). */
#define FIRSTLIGHT_CE 1u  /* IP: congestion experienced */
#define FIRSTLIGHT_ECE 2u /* TCP: ECN-Echo */

/* next() when nothing is due. */
#define FIRSTLIGHT_NEVER (~0ull)

/* One direction of a TCP connection: addresses as they stand in a packet, ports as numbers. */
struct firstlight_connection {
	unsigned char from[4];
	unsigned char to[4];
	unsigned short from_port;
	unsigned short to_port;
};

/* What the kernel offers to the engine. */
struct firstlight_host {
	unsigned int abi;
	/* The packet arrives at a device, marked. */
	void (*deliver)(unsigned int device, void *packet, unsigned int marks);
	/* The packet is lost. */
	void (*drop)(void *packet);
	/* The last bit of the packet has left its sender's interface; it is still in the network. */
	void (*sent)(void *packet);
	/* A device that was to wait may send again. */
	void (*room)(unsigned int device);
	/* One line for the kernel's log, without newline. */
	void (*log)(const char *line);
};

/* What the engine offers to the kernel. */
struct firstlight_engine {
	unsigned int abi;
	/* How many devices there are to be. */
	unsigned int devices;
	/*
	 * A device sends a frame of length bytes, whose first headers bytes lie at frame. 0 when its interface is full
	 * with that: it waits with the next one until room(), which is called at most once for each 0.
	 */
	int (*send)(unsigned int device, void *packet, const unsigned char *frame, unsigned int headers,
		    unsigned int length, unsigned long long now);
	/* When run() is to be called next, or FIRSTLIGHT_NEVER. It changes by send(), run() and control() only. */
	unsigned long long (*next)(void);
	/* Does all that is due up to now. */
	void (*run)(unsigned long long now);
	/* A write to /dev/firstlight: 0, or a negative errno value. */
	int (*control)(const unsigned char *message, unsigned long length, unsigned long long now);
	/*
	 * A program hands so many bytes to a connection, the next of which will have this sequence number: a call of
	 * write() begins. When it ends and has not taken them all, it is called with what is lacking, below 0. NULL
	 * when the engine does not ask for writes.
	 */
	void (*wrote)(const struct firstlight_connection *connection, unsigned int sequence, long long bytes);
	/* A connection is no more, and what it has not sent will never be. */
	void (*closed)(const struct firstlight_connection *connection);
};

/*
 * The one symbol of the shared object. directory is the run's. Returns 0, having logged why, when the engine is of
 * another ABI than the kernel, or cannot do what the directory asks for.
 *
 * It is called before the kernel boots, once, on the stack of the process and with all of its memory. Afterwards the
 * process forks helpers that exit: the object must leave nothing to be done then (destructors, atexit, open buffers).
 */
#define FIRSTLIGHT_OPEN "firstlight_open"
typedef const struct firstlight_engine *(*firstlight_open_fn)(const struct firstlight_host *host,
							      const char *directory);

#endif
