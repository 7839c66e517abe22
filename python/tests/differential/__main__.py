"""Runs ``--cases`` invented experiments on both kinds of hosts and lists what parts them, by frequency, and
by how much completion times diverge.

Stores in ``--out``: ``list.json``, and for each kind of difference the smallest case found, with both
captures.
"""

import argparse
import json
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import firstlight
import numpy as np
from firstlight.runs.divergence import completion

from . import packets
from .case import CONTROLLERS, OTHERS, Case, draw, draw_other
from .packets import Difference

SHRINKS = 30
"""Smaller cases that are tried for each kind of difference, at most."""
KINDS = ("simulated", "linux")


@dataclass(frozen=True)
class Verdict:
    """The outcome of a case."""

    case: Case
    first: Difference | None
    """None: all packets are equal."""
    later: Difference | None
    """The first difference if offered windows do not count."""
    failure: str | None = None
    """Why there are no two results to compare."""
    apart: float | None = None
    """The divergence of the flows' completion times (``firstlight compare``), in percent; None: none
    completed on both kinds of hosts."""


def judge(case: Case, keep: Path | None = None) -> Verdict:
    """Run a case on both kinds of hosts; ``keep``: where its file and both captures are stored."""
    with TemporaryDirectory(prefix="differential-") as folder:
        file = Path(folder) / "case.toml"
        file.write_text(case.text(), encoding="utf-8")
        results, captures = [], []
        for kind in KINDS:
            try:
                result = firstlight.run(file, {"hosts.kind": kind}, out=Path(folder) / kind)
            except firstlight.FirstlightError as e:
                return Verdict(case, None, None, f"{kind} hosts: {e}")
            assert isinstance(result.capture, Path)
            results.append(result)
            captures.append(result.capture)
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, keep)
            for kind, capture in zip(KINDS, captures, strict=True):
                shutil.copy(capture, keep / f"{kind}.pcapng")
        simulated, linux = (packets.read(capture) for capture in captures)
        apart = completion(*results)
    first = packets.difference(simulated, linux)
    later = packets.difference(simulated, linux, windows=False) if first else None
    return Verdict(case, first, later, apart=apart)


def shrink(verdict: Verdict) -> Verdict:
    """The smallest case found that differs in the same way."""
    tries = SHRINKS
    shrunk = True
    while shrunk and tries > 0:
        shrunk = False
        for smaller in verdict.case.smaller():
            tries -= 1
            found = judge(smaller)
            if found.first and verdict.first and found.first.kind == verdict.first.kind:
                verdict, shrunk = found, True
                break
            if tries <= 0:
                break
    return verdict


def kinds(verdicts: Iterable[Verdict]) -> dict[str, list[Verdict]]:
    """The cases that differ, by what differs first: the most frequent kind first, of each the smallest."""
    by_kind = defaultdict(list)
    for verdict in verdicts:
        if verdict.first:
            by_kind[verdict.first.kind].append(verdict)
    for same in by_kind.values():
        same.sort(key=lambda v: (len(v.case.flows), v.case.loss_percent, v.first.number if v.first else 0))
    return dict(sorted(by_kind.items(), key=lambda item: -len(item[1])))


def entry(verdicts: list[Verdict], smallest: Verdict) -> dict[str, Any]:
    """A kind of difference as ``list.json`` has it."""
    return {
        "cases": len(verdicts),
        "case": asdict(smallest.case),
        "first": asdict(smallest.first) if smallest.first else None,
    }


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="differential", description=__doc__)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=None, help="runs at a time (default: one per processor)")
    parser.add_argument("--out", type=Path, default=Path("results/differential"))
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument(
        "--others", action="store_true", help="draw 12 controllers, and three in ten without SACK"
    )
    return parser


def main() -> None:
    """Judge the cases, shrink one of each kind, and list all."""
    asked = parser().parse_args()
    drawn = draw_other if asked.others else draw
    cases = [drawn(asked.seed, number) for number in range(asked.cases)]
    with ProcessPoolExecutor(asked.jobs) as pool:
        verdicts = list(pool.map(judge, cases))
        found = kinds(verdicts)
        least = [same[0] for same in found.values()]
        smallest = least if asked.no_shrink else list(pool.map(shrink, least))
    shutil.rmtree(asked.out, ignore_errors=True)
    asked.out.mkdir(parents=True)
    listed = []
    for rank, ((kind, same), shrunk) in enumerate(zip(found.items(), smallest, strict=True), 1):
        judge(shrunk.case, asked.out / f"{rank}")
        listed.append({"kind": kind, **entry(same, shrunk)})
        print(f"{len(same):4}  {kind}: {asked.out / str(rank)}")
    failed = [v.failure for v in verdicts if v.failure]
    worst = sorted(((v.apart, n) for n, v in enumerate(verdicts) if v.apart is not None), reverse=True)
    completions = [{"number": number, "percent": percent} for percent, number in worst]
    listing = {
        "seed": asked.seed,
        "cases": len(cases),
        "failed": failed,
        "kinds": listed,
        "completions": completions,
    }
    (asked.out / "list.json").write_text(json.dumps(listing, indent=1) + "\n", encoding="utf-8")
    for failure in failed:
        print(f"failed: {failure}", file=sys.stderr)
    for cc in OTHERS if asked.others else CONTROLLERS:
        print(f"{cc}: {summary([v for v in verdicts if v.case.cc == cc])}")
    if asked.others:
        print(f"without SACK: {summary([v for v in verdicts if not v.case.sack])}")
    print(f"all: {summary(verdicts)}")
    print(spread(verdicts))


def summary(verdicts: list[Verdict]) -> str:
    """How many of some cases are equal."""
    compared = [v for v in verdicts if not v.failure]
    equal = sum(v.first is None for v in compared)
    alike = sum(v.later is None for v in compared)
    return f"{equal} of {len(compared)} equal, {alike} but for offered windows"


def spread(verdicts: list[Verdict]) -> str:
    """By how much completion times diverge."""
    apart = [v.apart for v in verdicts if v.apart is not None]
    if not apart:
        return "no flow completed on both kinds of hosts"
    median, most = np.percentile(apart, [50, 95])
    return (
        f"completion times of {len(apart)} diverge by {median:.2f} % in the median, {most:.1f} % at the 95th "
        f"percentile, {max(apart):.1f} % at most"
    )


if __name__ == "__main__":
    main()
