"""The ``firstlight`` command, and ``python -m firstlight``.

It imports the rest only after it has taken care of Ctrl-C, which may come in the first half second.
"""

import os
import sys


def main() -> None:
    """Entry point of the ``firstlight`` command."""
    try:
        import signal

        _open_closed_streams()
        signal.signal(signal.SIGINT, _leave)
    except KeyboardInterrupt:
        _leave()
    from firstlight import cli

    cli.main()


def _open_closed_streams() -> None:
    """A standard stream that the caller has closed (``>&-``) reads and writes nothing; else the next file
    that is opened would take its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest number that is free
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def _leave(*_: object) -> None:
    sys.stderr.write("interrupted; nothing was begun\n")
    sys.stderr.flush()
    os._exit(130)


if __name__ == "__main__":
    main()
