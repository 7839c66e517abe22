"""Sends by TCP and then by MPTCP; the receiver prints what has come of each, in Gb/s."""

import socket
import sys
import time

MPTCP = 262  # IPPROTO_MPTCP
PORT = 5000
PHASES = (("TCP", 0, 0.025), ("MPTCP", MPTCP, 0.025), ("MPTCP, first plane loaded", MPTCP, 0.04))


def send(host: str) -> None:
    block = bytes(1 << 18)
    start = time.monotonic()
    for index, (_, protocol, seconds) in enumerate(PHASES):
        if index == 2:
            time.sleep(max(0.0, start + 0.061 - time.monotonic()))
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as connection:
            connection.connect((host, PORT))
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                connection.sendall(block)


def receive() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP) as listener:
        listener.bind(("", PORT))
        listener.listen()
        for name, _, _ in PHASES:
            peer, _ = listener.accept()
            start, count = time.monotonic(), 0
            while data := peer.recv(1 << 20):
                count += len(data)
            print(f"{name}: {count * 8e-9 / (time.monotonic() - start):.1f} Gb/s", flush=True)


if __name__ == "__main__":
    send(sys.argv[2]) if sys.argv[1] == "send" else receive()
