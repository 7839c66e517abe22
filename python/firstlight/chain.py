"""DX's experiment on its measurement chain (Figs. 6 to 8), as an experiment of its own.

A file with a table ``[chain]`` asks for it: two hosts back to back, a flow that fills the link between them,
and the timestamps of one stage. The model is ``crates/lab/src/chain``, described in
``docs/models/measurement-chain.md``. Such a file has ``name``, ``seed`` and in ``[chain]``

- ``stage``: one of :func:`stages`;
- ``packets``: data packets sent, 2,000 to 10,000,000; the first two windows are not measured;
- ``repeats``: how many seeds, from ``seed`` on, 1 to 100.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from firstlight import _core
from firstlight.errors import SpecError

if TYPE_CHECKING:
    from firstlight.core import Spec

Array = NDArray[np.int64]
SECTION = "chain"
LINK_NS = 1200
"""What a packet of 1500 bytes takes at 10 Gb/s."""
RANGES = {"packets": (2_000, 10_000_000), "repeats": (1, 100)}


@dataclass(frozen=True)
class Chain:
    """One experiment on the chain."""

    stage: str
    packets: int = 200_000
    repeats: int = 1
    seed: int = 1
    name: str = SECTION


def stages() -> list[str]:
    """The stages of Fig. 6, from the kernel's stamps to all that is done, in software and in hardware."""
    return list(_core.chain_stages())


def asked(spec: "Spec") -> bool:
    """Whether an experiment file is one on the chain."""
    try:
        return SECTION in spec.text and SECTION in spec.document()
    except SpecError:
        return False  # the core says what is wrong


def read(spec: "Spec") -> Chain:
    """The experiment, checked whole; raises :class:`SpecError`."""
    document = spec.document()
    table = document.pop(SECTION)
    if not isinstance(table, dict):
        raise SpecError(f"{spec.path}: {SECTION} is a table: [{SECTION}]")
    values = {**document, **{f"{SECTION}.{k}": v for k, v in table.items()}, **spec.overrides}
    if values.pop("time_scale", 1) != 1:
        raise SpecError(f"{spec.path}: time_scale: hosts back to back have no fabric to stretch; remove it")
    known = {"name": "name", "seed": "seed", **{f"{SECTION}.{k}": k for k in ("stage", "packets", "repeats")}}
    for key in values:
        if key not in known:
            near = get_close_matches(key, known, 1) or [", ".join(known)]
            raise SpecError(f"{spec.path}: {key}: no such key beside [{SECTION}]; nearest: {near[0]}")
    if "chain.stage" not in values:
        raise SpecError(f"{spec.path}: chain.stage is missing; one of {_listed()}")
    chain = Chain(**{known[key]: value for key, value in values.items()})
    if chain.stage not in stages():
        raise SpecError(f"{spec.path}: chain.stage = '{chain.stage}': there is none; one of {_listed()}")
    for key, (least, most) in {**RANGES, "seed": (0, 2**62)}.items():
        value = getattr(chain, key)
        if type(value) is not int or not least <= value <= most:
            raise SpecError(f"{spec.path}: {key} = {value!r}: a whole number, {least} to {most}, is needed")
    return chain


def _listed() -> str:
    return ", ".join(f"'{stage}'" for stage in stages())


def inspect(spec: "Spec") -> dict[str, Any]:
    """What would be run, in the form of :func:`firstlight.core.inspect`."""
    chain = read(spec)
    return {
        "name": chain.name,
        "seed": chain.seed,
        "stage": chain.stage,
        "packets": chain.packets,
        "repeats": chain.repeats,
        "hosts": "2, back to back at 10 Gb/s",
        "spec": asdict(chain),
    }


def execute(
    spec: "Spec", progress: Callable[[float], None] | None = None
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Run it. Returns manifest and tables, as :class:`firstlight.core.Output` has them."""
    chain = read(spec)
    digest = hashlib.sha256()
    seeds: list[dict[str, float]] = []
    first: Mapping[str, Any] = {}
    for repeat in range(chain.repeats):
        series = _core.measurement_chain(chain.stage, chain.packets, chain.seed + repeat)
        first = first or series
        seeds.append({"seed": chain.seed + repeat, **measured(series)})
        for name in ("rtt_ns", "one_way_ns", "tx_gaps_ns", "rx_gaps_ns"):
            digest.update(series[name].tobytes())
        if progress:
            progress((repeat + 1) / chain.repeats)
    tables = {
        "summary": summary(seeds),
        "chain_seeds": {column: np.array([row[column] for row in seeds]) for column in seeds[0]},
        "chain_rtts": {"rtt_us": first["rtt_ns"] / 1e3},
        "chain_gaps": {"tx_us": first["tx_gaps_ns"] / 1e3, "rx_us": first["rx_gaps_ns"] / 1e3},
    }
    manifest = {
        "name": chain.name,
        "seed": chain.seed,
        "version": _core.version(),
        "digest": digest.hexdigest()[:16],
        "spec": json.loads(json.dumps(asdict(chain))),
        "columns": COLUMNS,
        "warnings": [],
    }
    return manifest, tables


COLUMNS = {
    "chain_seeds": "one row for each seed: deviation, extremes and quartiles of the RTT (us), gaps between "
    "stamps that are smaller than the link allows (%), the part of the time the link was busy",
    "chain_rtts": "RTT of each ACK by the stamps, (t4 - t1) - (t3 - t2), of the first seed",
    "chain_gaps": "gaps between the stamps of successive data packets, of the first seed",
}
MEANINGS = {
    "rtt_deviation_us": ("us", "standard deviation of the RTT"),
    "rtt_min_us": ("us", "the least RTT"),
    "rtt_max_us": ("us", "the largest RTT"),
    "rtt_range_us": ("us", "the largest less the least RTT"),
    "rtt_middle_us": ("us", "width of the middle half of the RTTs"),
    "tx_gaps_below_pct": ("%", "gaps between stamps of sent packets that are smaller than the link allows"),
    "rx_gaps_below_pct": ("%", "the same of received packets"),
    "busy_pct": ("%", "the part of the time in which the link carried data"),
}


def measured(series: Mapping[str, Any]) -> dict[str, float]:
    """The metrics of one seed's series."""
    rtt: Array = series["rtt_ns"]
    lower, upper = np.percentile(rtt, [25, 75], method="inverted_cdf")
    values = {
        "rtt_deviation_us": rtt.std() / 1e3,
        "rtt_min_us": rtt.min() / 1e3,
        "rtt_max_us": rtt.max() / 1e3,
        "rtt_range_us": (rtt.max() - rtt.min()) / 1e3,
        "rtt_middle_us": (upper - lower) / 1e3,
        "tx_gaps_below_pct": 100 * (series["tx_gaps_ns"] < LINK_NS).mean(),
        "rx_gaps_below_pct": 100 * (series["rx_gaps_ns"] < LINK_NS).mean(),
        "busy_pct": 100 * series["busy"],
    }
    return {name: float(value) for name, value in values.items()}


def summary(seeds: list[dict[str, float]]) -> dict[str, Any]:
    """Table ``summary``: the mean over the seeds, and for the deviation the least and the largest."""
    rows = [
        (name, unit, float(np.mean([seed[name] for seed in seeds])), f"{meaning}, mean over the seeds")
        for name, (unit, meaning) in MEANINGS.items()
    ]
    deviations = [seed["rtt_deviation_us"] for seed in seeds]
    rows.append(("rtt_deviation_low_us", "us", min(deviations), "the least such deviation"))
    rows.append(("rtt_deviation_high_us", "us", max(deviations), "the largest such deviation"))
    names = ("metric", "unit", "value", "meaning")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
