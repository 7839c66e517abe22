"""A server of requests, and a client that measures how long each of 100 requests takes.

A request has a header of 100 bytes and a body of 900, an answer 100 bytes. ``write-write-read`` writes header and
body by themselves, ``one-write`` both at once, and ``no-delay`` by themselves without Nagle's algorithm.
"""

import socket
import sys
import time

HEADER, BODY, ANSWER = 100, 900, 100
REQUESTS, PORT = 100, 7000


def receive(connection, size):
    while size > 0:
        data = connection.recv(size)
        if not data:
            return False
        size -= len(data)
    return True


def serve():
    listener = socket.create_server(("", PORT))
    connection, _ = listener.accept()
    while receive(connection, HEADER + BODY):
        connection.sendall(bytes(ANSWER))


def ask(server, pattern):
    connection = socket.create_connection((server, PORT))
    if pattern == "no-delay":
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with open("requests.csv", "w") as rows:
        print("start_us,duration_us,bytes", file=rows)
        for _ in range(REQUESTS):
            begin = time.monotonic_ns()
            if pattern == "one-write":
                connection.sendall(bytes(HEADER + BODY))
            else:
                connection.sendall(bytes(HEADER))
                connection.sendall(bytes(BODY))
            receive(connection, ANSWER)
            end = time.monotonic_ns()
            print(f"{begin / 1e3},{(end - begin) / 1e3},{HEADER + BODY}", file=rows)
            time.sleep(0.01)


if sys.argv[1] == "serve":
    serve()
else:
    ask(*sys.argv[2:])
