/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a write costs, in nanoseconds of the processor: of so many bytes to a TCP connection of this machine, or to a
 * file. Run it with the library and without.
 *
 *   cost tcp 1 | cost tcp 65536 | cost file 1
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define WRITES 200000

static void *discard(void *listener)
{
	int connection = accept(*(int *)listener, NULL, NULL);

	while (recv(connection, NULL, 1 << 20, MSG_TRUNC) > 0)
		;
	return NULL;
}

static int connection(pthread_t *receiver)
{
	static int listener;
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int sender = socket(AF_INET, SOCK_STREAM, 0);

	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (void *)&address, length) || listen(listener, 1) ||
	    getsockname(listener, (void *)&address, &length))
		exit(1);
	pthread_create(receiver, NULL, discard, &listener);
	return connect(sender, (void *)&address, length) ? -1 : sender;
}

static double processor_ns(void)
{
	struct rusage used;

	getrusage(RUSAGE_THREAD, &used);
	return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e9 + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e3;
}

int main(int count, char **words)
{
	size_t length = count == 3 ? strtoul(words[2], NULL, 10) : 0;
	pthread_t receiver = 0;
	double before;
	char *bytes;
	int file;

	if (!length)
		return 2;
	bytes = calloc(1, length);
	file = strcmp(words[1], "tcp") ? open("/dev/null", O_WRONLY) : connection(&receiver);
	before = processor_ns();
	for (int i = 0; i < WRITES; i++)
		if (write(file, bytes, length) < 0)
			return 1;
	printf("%.0f\n", (processor_ns() - before) / WRITES);
	close(file);
	if (receiver)
		pthread_join(receiver, NULL);
	return 0;
}
