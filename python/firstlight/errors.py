"""Everything that Firstlight raises on purpose, as one tree.

``FirstlightError`` is the root: ``except fl.FirstlightError`` catches every error that a user can cause or
meet. A message says what is wrong, where, and what to write instead.
"""


class FirstlightError(Exception):
    """Root of all errors of this package."""


class SpecError(FirstlightError):
    """The experiment file, or an override of one of its keys, is wrong."""


class ResultError(FirstlightError):
    """A directory is not a result, or cannot be written as one."""


class PlanError(FirstlightError):
    """The plan of a reproduction (``claim.toml``), a ``[sweep]`` table, or an argument of a call is wrong."""


class RunError(FirstlightError):
    """A run stopped before its end for a reason that is not the experiment's."""


class KernelError(RunError):
    """No kernel for Linux hosts fits, or it cannot be built."""
