"""The ``firstlight`` command, and ``python -m firstlight``.

It imports the rest only after it has taken care of Ctrl-C, which may come in the first half second.
"""

import os
import sys


def main() -> None:
    """Entry point of the ``firstlight`` command."""
    try:
        import signal

        signal.signal(signal.SIGINT, _leave)
    except KeyboardInterrupt:
        _leave()
    from firstlight import cli

    cli.main()


def _leave(*_: object) -> None:
    sys.stderr.write("interrupted; nothing was begun\n")
    sys.stderr.flush()
    os._exit(130)


if __name__ == "__main__":
    main()
