"""Firstlight: a laboratory for datacenter transport on one machine.

>>> import firstlight as fl
>>> result = fl.run("experiment.toml", {"voq.large": 50})  # doctest: +SKIP
>>> result.summary["circuit_utilization_pct"]  # doctest: +SKIP

Times are in the unit that a column's or key's name ends with; frames are pandas.
"""

from firstlight.circuits.demand import read_demand
from firstlight.circuits.schedule import Schedule, schedule, schedulers
from firstlight.core import version
from firstlight.errors import FirstlightError, KernelError, PlanError, ResultError, RunError, SpecError
from firstlight.runs.compare import Comparison, compare, load_comparison
from firstlight.runs.result import Result, load
from firstlight.runs.run import inspect, run
from firstlight.runs.sweep import Sweep, load_sweep, sweep

__version__ = version()
__all__ = [
    "Comparison",
    "FirstlightError",
    "KernelError",
    "PlanError",
    "Result",
    "ResultError",
    "RunError",
    "Schedule",
    "SpecError",
    "Sweep",
    "__version__",
    "compare",
    "inspect",
    "load",
    "load_comparison",
    "load_sweep",
    "read_demand",
    "run",
    "schedule",
    "schedulers",
    "sweep",
]
