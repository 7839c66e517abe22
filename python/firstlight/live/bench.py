"""An experiment that is run again and again with other settings, for a page that shows each run.

A rerun has to take well under a second. A run that takes longer is stopped, and the experiment's duration is
shortened to what the time allows; the page says so. Nothing is left out of what is simulated until then. The
warm-up is not skipped: the page shows a run from its first packet.
"""

import json
import shlex
import threading
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import tomlkit

from firstlight import core
from firstlight.core import Experiment, Output, Spec
from firstlight.errors import FirstlightError, SpecError
from firstlight.live.frame import frame_of
from firstlight.live.knobs import Knob, knobs, typed

BUDGET_S = 0.5
"""Seconds that a rerun may take."""
SHRINK = 0.7
"""A run that was stopped is repeated with this share of the time that it reached."""
SAMPLES = 300
"""Samples of a run over time."""
SHORTEST_US = 50.0
MOST_QUEUES = 128
"""Ports or VOQs whose queues are watched, those with the longest first."""
Settings = Mapping[str, Any]
SCENES = Path(__file__).parent / "scenes"


class Stale(FirstlightError):
    """A newer request has taken this run's place."""


def scenes() -> dict[str, Path]:
    """The experiments that come with the page, by name."""
    return {file.stem: file for file in sorted(SCENES.glob("*.toml"))}


def file_of(experiment: str | Path) -> Path:
    """The file of an experiment, or of the scene with this name; raises :class:`SpecError` for neither."""
    file, known = Path(experiment), scenes()
    if file.exists():
        return file
    if str(experiment) not in known:
        raise SpecError(
            f"{core.named(file)}: no such file; scenes that come with Firstlight: {', '.join(known)}"
        )
    return known[str(experiment)]


@dataclass
class Bench:
    """One experiment, and the known costs of its runs."""

    spec: Spec
    name: str
    budget_s: float = BUDGET_S
    _latest: "count[int]" = field(default_factory=lambda: count(1))
    _wanted: int = 0
    _running: threading.Lock = field(default_factory=threading.Lock)
    _length_us: float | None = None
    """The duration that the time allows, once a run was stopped."""
    _watched: dict[str, list[str]] = field(default_factory=dict)
    """Watched queues, by the fabric that has them."""

    @classmethod
    def read(cls, path: str | Path, overrides: core.Overrides | None = None) -> "Bench":
        """Read an experiment, or a scene by its name; raises :class:`SpecError` if it is wrong, or has no
        simulated hosts."""
        spec = Spec.read(file_of(path), overrides)
        experiment = spec.check()
        if "chain" in experiment.resolved:
            raise SpecError(
                f"{spec.path}: a measurement chain has no fabric to show; `firstlight run` runs it"
            )
        if experiment.resolved["hosts"].get("kind", "simulated") != "simulated":
            raise SpecError(
                f"{spec.path}: a page reruns simulated hosts only: add --set hosts.kind=simulated"
            )
        return cls(spec, experiment.name)

    def knobs(self) -> list[Knob]:
        """The settings that a page can change."""
        return knobs(self.spec)

    def run(self, settings: Settings) -> dict[str, Any]:
        """Run the experiment with ``settings`` on top of it and return what a page shows (:mod:`frame`).

        A newer call ends this one with :class:`Stale`. Raises :class:`SpecError` for wrong settings.
        """
        mine = self._wanted = next(self._latest)
        spec = self.spec.with_overrides(settings)
        with self._running:
            if mine != self._wanted:
                raise Stale("a newer run was asked for")
            began = time.monotonic()
            experiment = spec.check()
            output, length = self._within_budget(spec, experiment, mine)
        took = time.monotonic() - began
        return {
            **frame_of(experiment, output),
            "took_ms": round(1e3 * took),
            "note": _note(experiment, length),
            "toml": self.toml(settings),
            "command": self.command(settings),
        }

    def _within_budget(self, spec: Spec, experiment: Experiment, mine: int) -> tuple[Output, float]:
        full = duration_us(experiment)
        length = min(full, self._length_us or full)
        while True:
            watched = spec.with_overrides(self._measures(spec, experiment, length))
            began = time.monotonic()
            reached = 1.0

            def on_part(done: float, began: float = began, length: float = length) -> None:
                nonlocal reached
                if mine != self._wanted:
                    raise Stale("a newer run was asked for")
                if time.monotonic() - began > self.budget_s and length > SHORTEST_US:
                    reached = done
                    raise _TooLong

            try:
                return core.simulate(watched.check(), on_part), length
            except _TooLong:
                length = self._length_us = max(SHORTEST_US, _round(SHRINK * max(reached, 0.01) * length))

    def _measures(self, spec: Spec, experiment: Experiment, length: float) -> dict[str, Any]:
        """The measurements that the page's curves need, and the duration: whole weeks on a hybrid fabric."""
        step = f"{max(1, round(length / SAMPLES * 1e3))}ns"
        asked: dict[str, Any] = {"warmup": "0s", "duration": f"{_round(length):.10g}us"}
        if experiment.resolved.get("flows") or experiment.resolved.get("workload"):
            asked["measure.throughput"] = step
        if week := experiment.inspect()["week_us"]:
            asked["duration"] = f"{_round(max(1, int(length / week)) * week):.10g}us"
        return asked | {"measure.queues": self._queues(spec, experiment), "measure.queue_samples": step}

    def _queues(self, spec: Spec, experiment: Experiment) -> list[str]:
        """The ports of switches, or the VOQs. Where there are too many: the longest ones of a short run."""
        fabric = json.dumps(experiment.resolved["fabric"])
        kinds = (
            ("voq",) if experiment.resolved["fabric"]["kind"] == "hybrid" else ("host_port", "switch_port")
        )
        if fabric not in self._watched:
            short = spec.with_overrides({"warmup": "0s", "duration": "200us"})
            ports = core.simulate(short.check()).tables["ports"]
            found = [
                (peak, name)
                for name, kind, peak in zip(ports["name"], ports["kind"], ports["peak_queue"], strict=True)
                if kind in kinds
            ]
            kept = {name for _, name in sorted(found, key=lambda one: -one[0])[:MOST_QUEUES]}
            self._watched[fabric] = [name for _, name in found if name in kept]
        return self._watched[fabric]

    def toml(self, settings: Settings) -> str:
        """The experiment's file with the settings in their places; its comments stay."""
        document = tomlkit.parse(self.spec.text)
        for key, value in {**self.spec.overrides, **settings}.items():
            _set(document, key.split("."), typed(value))
        text = tomlkit.dumps(document)
        tomllib.loads(text)
        return text

    def command(self, settings: Settings) -> str:
        """The command that runs the experiment with the settings."""
        sets = [f"{key}={_plain(value)}" for key, value in {**self.spec.overrides, **settings}.items()]
        return shlex.join(["firstlight", "run", self.spec.path, *(w for s in sets for w in ("--set", s))])


class _TooLong(Exception):
    """A run takes longer than a page's reader waits."""


def duration_us(experiment: Experiment) -> float:
    """The duration of an experiment in us."""
    return float(experiment.inspect()["duration_us"])


def _round(length_us: float) -> float:
    """A duration with three digits: people read it."""
    return float(f"{length_us:.3g}") if length_us < 1e9 else length_us


def _note(experiment: Experiment, length: float) -> str:
    full = duration_us(experiment)
    warm = float(experiment.inspect()["warmup_us"])
    notes = []
    if length < full:
        notes.append(
            f"Shortened from {_time(full)} to {_time(length)}, so that a rerun takes less than a second."
        )
    if warm:
        notes.append(f"Shown from the first packet: the warm-up of {_time(warm)} is measured too.")
    return " ".join(notes)


def _time(us: float) -> str:
    unit, scale = next((u, s) for u, s in (("s", 1e6), ("ms", 1e3), ("us", 1.0)) if us >= s or u == "us")
    return f"{us / scale:.4g} {unit}"


def _set(document: Any, path: list[str], value: Any) -> None:
    """Set a key of a TOML document; tables that are missing are made."""
    *tables, last = path
    for name in tables:
        if name.isdigit() and not isinstance(document, Mapping):
            document = document[int(name)]
        else:
            if name not in document:
                document[name] = tomlkit.table()
            document = document[name]
    document[last] = value


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
