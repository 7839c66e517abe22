"""DX's experiment on its measurement chain (Figs. 6 to 8), as an experiment of its own.

A file with a table ``[chain]`` asks for it: two hosts back to back, a flow that fills the link between them,
and the timestamps of one stage. The model is ``crates/lab/src/chain``, described in
``docs/models/measurement-chain.md``. Such a file has ``name``, ``seed`` and in ``[chain]``

- ``stage``: one of :func:`stages`;
- ``packets``: data packets sent, 2,000 to 10,000,000; the first two windows are not measured.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from firstlight import _core
from firstlight.errors import SpecError
from firstlight.numbers import quantiles

if TYPE_CHECKING:
    from firstlight.core import Spec

Array = NDArray[np.int64]
SECTION = "chain"
LINK_NS = 1200
"""What a packet of 1500 bytes takes at 10 Gb/s."""
RANGES = {"packets": (2_000, 10_000_000), "seed": (0, 2**62)}


@dataclass(frozen=True)
class Chain:
    """One experiment on the chain."""

    stage: str
    packets: int = 200_000
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
    known = {"name": "name", "seed": "seed", **{f"{SECTION}.{k}": k for k in ("stage", "packets")}}
    for key in values:
        if key not in known:
            near = get_close_matches(key, known, 1) or [", ".join(known)]
            raise SpecError(f"{spec.path}: {key}: no such key beside [{SECTION}]; nearest: {near[0]}")
    if "chain.stage" not in values:
        raise SpecError(f"{spec.path}: chain.stage is missing; one of {_listed()}")
    chain = Chain(**{known[key]: value for key, value in values.items()})
    if chain.stage not in stages():
        raise SpecError(f"{spec.path}: chain.stage = '{chain.stage}': there is none; one of {_listed()}")
    for key, (least, most) in RANGES.items():
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
        "hosts": "2, back to back at 10 Gb/s",
        "spec": asdict(chain),
    }


def execute(
    spec: "Spec", progress: Callable[[float], None] | None = None
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Run it. Returns manifest and tables, as :class:`firstlight.core.Output` has them."""
    chain = read(spec)
    series = _core.measurement_chain(chain.stage, chain.packets, chain.seed)
    digest = hashlib.sha256()
    for name in ("rtt_ns", "one_way_ns", "tx_gaps_ns", "rx_gaps_ns"):
        digest.update(np.asarray(series[name], dtype="<i8").tobytes())
    if progress:
        progress(1.0)
    tables = {
        "summary": summary(series),
        "chain_rtts": {"rtt_us": series["rtt_ns"] / 1e3},
        "chain_gaps": {"tx_us": series["tx_gaps_ns"] / 1e3, "rx_us": series["rx_gaps_ns"] / 1e3},
    }
    manifest = {
        "name": chain.name,
        "seed": chain.seed,
        "version": _core.version(),
        "digest": digest.hexdigest()[:16],
        "spec": asdict(chain),
        "columns": COLUMNS,
        "warnings": [],
    }
    return manifest, tables


COLUMNS = {
    "chain_rtts": {"rtt_us": "RTT of each ACK by the stamps: (t4 - t1) - (t3 - t2)"},
    "chain_gaps": {
        "tx_us": "gaps between the stamps of data packets sent one after the other",
        "rx_us": "the same of received ones",
    },
}


def summary(series: Mapping[str, Any]) -> dict[str, Any]:
    """Table ``summary`` of one stage's series."""
    rtt: Array = series["rtt_ns"]
    lower, upper = quantiles(rtt, [0.25, 0.75])
    tx_below, rx_below = (100 * np.mean(series[f"{way}_gaps_ns"] < LINK_NS) for way in ("tx", "rx"))
    rows = [
        ("rtt_deviation_us", "us", rtt.std() / 1e3, "standard deviation of the RTT"),
        ("rtt_min_us", "us", rtt.min() / 1e3, "the least RTT"),
        ("rtt_max_us", "us", rtt.max() / 1e3, "the largest RTT"),
        ("rtt_range_us", "us", (rtt.max() - rtt.min()) / 1e3, "the largest less the least RTT"),
        ("rtt_middle_us", "us", (upper - lower) / 1e3, "width of the middle half of the RTTs"),
        ("tx_gaps_below_pct", "%", tx_below, "gaps between stamps of sent packets below 1.2 us"),
        ("rx_gaps_below_pct", "%", rx_below, "gaps between stamps of received packets below 1.2 us"),
        ("busy_pct", "%", 100 * series["busy"], "the part of the time in which the link carried data"),
    ]
    return {
        "metric": [row[0] for row in rows],
        "unit": [row[1] for row in rows],
        "value": np.array([row[2] for row in rows], dtype=np.float64),
        "meaning": [row[3] for row in rows],
    }
