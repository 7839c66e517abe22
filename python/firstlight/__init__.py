"""Firstlight: a laboratory for datacenter transport on one machine.

>>> import firstlight as fl
>>> result = fl.run("experiment.toml", {"voq.large": 50})  # doctest: +SKIP
>>> result.summary["circuit_utilization_pct"]  # doctest: +SKIP

Times are in the unit that a column's or key's name ends with; frames are pandas.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from firstlight.circuits.demand import read_demand as read_demand
    from firstlight.circuits.schedule import (
        Schedule as Schedule,
    )
    from firstlight.circuits.schedule import (
        schedule as schedule,
    )
    from firstlight.circuits.schedule import (
        schedulers as schedulers,
    )
    from firstlight.claims.reproduce import (
        Reproduction as Reproduction,
    )
    from firstlight.claims.reproduce import (
        reproduce as reproduce,
    )
    from firstlight.congestion import (
        Ack as Ack,
    )
    from firstlight.congestion import (
        CongestionControl as CongestionControl,
    )
    from firstlight.congestion import (
        Window as Window,
    )
    from firstlight.core import (
        Timeline as Timeline,
    )
    from firstlight.core import (
        version as version,
    )
    from firstlight.errors import (
        FirstlightError as FirstlightError,
    )
    from firstlight.errors import (
        KernelError as KernelError,
    )
    from firstlight.errors import (
        PlanError as PlanError,
    )
    from firstlight.errors import (
        ResultError as ResultError,
    )
    from firstlight.errors import (
        RunError as RunError,
    )
    from firstlight.errors import (
        SpecError as SpecError,
    )
    from firstlight.live.widget import Live as Live
    from firstlight.runs.compare import (
        Comparison as Comparison,
    )
    from firstlight.runs.compare import (
        compare as compare,
    )
    from firstlight.runs.compare import (
        load_comparison as load_comparison,
    )
    from firstlight.runs.cost import Cost as Cost
    from firstlight.runs.cost import cost as cost
    from firstlight.runs.result import Result as Result
    from firstlight.runs.result import load as load
    from firstlight.runs.run import inspect as inspect
    from firstlight.runs.run import run as run
    from firstlight.runs.sweep import Sweep as Sweep
    from firstlight.runs.sweep import load_sweep as load_sweep
    from firstlight.runs.sweep import sweep as sweep

    __version__ = version()

_PLACES = {
    "circuits.demand": ("read_demand",),
    "circuits.schedule": ("Schedule", "schedule", "schedulers"),
    "claims.reproduce": ("Reproduction", "reproduce"),
    "congestion": ("Ack", "CongestionControl", "Window"),
    "core": ("Timeline", "version"),
    "errors": ("FirstlightError", "KernelError", "PlanError", "ResultError", "RunError", "SpecError"),
    "live.widget": ("Live",),
    "runs.compare": ("Comparison", "compare", "load_comparison"),
    "runs.cost": ("Cost", "cost"),
    "runs.result": ("Result", "load"),
    "runs.run": ("inspect", "run"),
    "runs.sweep": ("Sweep", "load_sweep", "sweep"),
}
"""The module of each name, which is imported when the name is first used: pandas alone takes 0.3 s."""
_MODULES = {name: f"firstlight.{module}" for module, names in _PLACES.items() for name in names}
__all__ = [*_MODULES, "__version__"]


def __getattr__(name: str) -> "Any":
    import importlib

    if name == "__version__":
        return importlib.import_module("firstlight.core").version()
    if name not in _MODULES:
        raise AttributeError(f"module 'firstlight' has no attribute '{name}'")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
