"""``python -m firstlight`` is the ``firstlight`` command."""

from firstlight.cli import main

main()
