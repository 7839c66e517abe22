"""Starts a kernel so that it cannot outlive its supervisor. Run as a script, between the two:

``python -I -S launch.py SUPERVISOR CPU PROGRAM ARGUMENT...``

The program that replaces this one is killed when the supervisor dies, runs on one processor, has its
addresses where they always are, and leaves no core file. It is a script of its own, not a hook that runs
between fork and exec, because the supervisor may have threads.
"""

import ctypes
import os
import resource
import signal
import sys

PR_SET_PDEATHSIG = 1
ADDR_NO_RANDOMIZE = 0x0040000


def main(supervisor: int, cpu: int, command: list[str]) -> None:
    """Become ``command``."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit(f"firstlight: prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != supervisor:
        sys.exit("firstlight: the supervisor is gone")
    libc.personality(
        ADDR_NO_RANDOMIZE
    )  # where it is forbidden the run is none the worse, only less repeatable
    if cpu >= 0:
        os.sched_setaffinity(0, {cpu})
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        os.execv(command[0], command)
    except OSError as e:
        sys.exit(f"firstlight: {command[0]}: {e.strerror}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
