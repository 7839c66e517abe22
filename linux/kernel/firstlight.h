/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface between a kernel in virtual time and the engine, a shared object that the kernel loads.
 *
 * Times are nanoseconds of the kernel's clock. A packet is an sk_buff of the kernel, opaque to the engine. The engine
 * owns it from send() on, until it calls either deliver() or drop() for it. Every call is made with interrupts off, on
 * the kernel's small stack. No call is made within another, except the engine's calls of the kernel within send(),
 * run() and control().
 */
#ifndef FIRSTLIGHT_H
#define FIRSTLIGHT_H

/* Version of the interface: counted up with every change below. */
#define FIRSTLIGHT_ABI 5

/* Marks that the fabric has made on a packet, for deliver(). */
#define FIRSTLIGHT_CE 1u  /* IP: congestion experienced */
#define FIRSTLIGHT_ECE 2u /* TCP: ECN-Echo */

/* The value of next() when nothing is due. */
#define FIRSTLIGHT_NEVER (~0ull)

/* One direction of a TCP connection: addresses in the byte order of a packet, ports in that of the machine. */
struct firstlight_connection {
	unsigned char from[4];
	unsigned char to[4];
	unsigned short from_port;
	unsigned short to_port;
};

/* What the processors of a host have done since the kernel began, times in picoseconds. */
struct firstlight_processors {
	/* All work of all processors. */
	unsigned long long busy;
	/* Of this, the card's: interrupts, packets that it has received, and what the stack sends upon these. */
	unsigned long long card;
	unsigned long long interrupts;
};

/* Functions of the kernel for the engine. */
struct firstlight_host {
	unsigned int abi;
	/*
	 * A packet with timestamps of the interfaces (firstlight_stamps.h) is about to arrive: when it left its
	 * sender's interface and came to its receiver's, in nanoseconds of each host's own clock, modulo 2^32.
	 */
	void (*stamp)(void *packet, unsigned int sent, unsigned int received);
	/* A packet arrives at a device, with these marks. */
	void (*deliver)(unsigned int device, void *packet, unsigned int marks);
	/* A packet is lost. */
	void (*drop)(void *packet);
	/* The last bit of a packet has left its sender's interface; the packet is still in the network. */
	void (*sent)(void *packet);
	/* A device whose interface was full may send again. */
	void (*room)(unsigned int device);
	/* What the processors of a device's host have done. Only where hosts have processors. */
	void (*processors)(unsigned int device, struct firstlight_processors *done);
	/* Writes one line, without newline, to the kernel's log. */
	void (*log)(const char *line);
};

/* Functions of the engine for the kernel. */
struct firstlight_engine {
	unsigned int abi;
	/* How many devices the kernel makes. */
	unsigned int devices;
	/*
	 * A device sends a frame of length bytes, the first headers bytes of which lie at frame. Returns 0 when the
	 * frame fills the device's interface: the device waits with the next one until room(), which the engine calls
	 * at most once for each 0.
	 */
	int (*send)(unsigned int device, void *packet, const unsigned char *frame, unsigned int headers,
		    unsigned int length, unsigned long long now);
	/* When to call run() next, or FIRSTLIGHT_NEVER. Only send(), run() and control() change it. */
	unsigned long long (*next)(void);
	/* Does everything that is due up to now. */
	void (*run)(unsigned long long now);
	/* Takes a write to /dev/firstlight. Returns 0 or a negative errno value. */
	int (*control)(const unsigned char *message, unsigned long length, unsigned long long now);
	/*
	 * A program begins to write so many bytes to a connection; the next byte will have this sequence number. If the
	 * write ends with fewer bytes, a second call has the missing number, below 0. NULL when the engine does not
	 * need writes.
	 */
	void (*wrote)(const struct firstlight_connection *connection, unsigned int sequence, long long bytes);
	/* A connection is closed: bytes that it has not sent never will be. */
	void (*closed)(const struct firstlight_connection *connection);
};

/*
 * The only symbol of the shared object. directory is the run's directory. Returns 0 and logs the reason when the engine
 * has another version of the interface than the kernel, or cannot run what the directory says.
 *
 * The kernel calls it once before it boots, on the stack of the process and with all of its memory. Later the process
 * forks helpers that exit: the object must leave nothing to do at an exit (destructors, atexit, open buffers).
 */
#define FIRSTLIGHT_OPEN "firstlight_open"
typedef const struct firstlight_engine *(*firstlight_open_fn)(const struct firstlight_host *host,
							      const char *directory);

#endif
