"""Running claims: every point of the chosen ones, once each, on all cores; then the rows."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from firstlight import core
from firstlight.claims.agreement import Agreement, agreements, headline
from firstlight.claims.claim import HOSTS, At, Claim, Hosts, Mode, Paper, find
from firstlight.claims.verdict import Outcome, Row
from firstlight.errors import ResultError, SpecError
from firstlight.runs import pool
from firstlight.runs.result import load
from firstlight.runs.sweep import STORE, replace_text

INDEX = "reproduction.json"
VERDICT = "verdict.json"
Plan = dict[tuple[str, Hosts, str, At], pool.Point]
"""The runs of some claims, by claim, hosts, curve and point."""


@dataclass(frozen=True)
class Reproduction:
    """The outcomes of the chosen claims and where they lie."""

    mode: Mode
    outcomes: list[Outcome]
    path: Path

    @property
    def hosts(self) -> list[Hosts]:
        """The kinds of hosts that were run."""
        return [h for h in HOSTS if any(h in o.hosts for o in self.outcomes)]

    @property
    def papers(self) -> list[Paper]:
        """The papers that the claims are from."""
        return list(dict.fromkeys(o.claim.source for o in self.outcomes))

    def rows(self) -> list[Row]:
        """All rows: claim by claim, then the headline ratios."""
        return [row for o in self.outcomes for row in o.rows()] + headline(self.outcomes)

    def agreements(self) -> list[Agreement]:
        """Mean differences per figure."""
        return [a for o in self.outcomes for a in agreements(o, o.rows())]


def plan(claims: Sequence[Claim], mode: Mode, hosts: Sequence[Hosts] = ("simulated",)) -> Plan:
    """Every run of the claims, each checked whole by the core before any is run; the dearest first."""
    points: Plan = {}
    for claim in claims:
        for kind, curve, at in claim.runs(mode, hosts):
            point = claim.point(curve, at, mode, kind)
            try:
                core.inspect(point.spec)
            except SpecError as e:
                raise SpecError(f"{point.label}: {e}") from None
            points[claim.name, kind, curve.name, at] = point
    return dict(sorted(points.items(), key=lambda item: -item[1].weight))


def run(
    claims: Sequence[Claim],
    mode: Mode,
    points: Plan,
    out: Path,
    *,
    jobs: int | None = None,
    listener: pool.Listener | None = None,
    patience: float = core.PATIENCE,
) -> Reproduction:
    """Reproduce ``claims`` (planned as ``points``) into ``out``; points that lie there already are not run
    again."""
    results = pool.run_all(
        list(points.values()), out / STORE, jobs=jobs, listener=listener, patience=patience
    )
    outcomes = {c.name: Outcome(c, mode) for c in claims}
    for (name, kind, curve, at), result in zip(points, results, strict=True):
        outcomes[name].results[kind, curve, at] = result
    reproduction = Reproduction(mode, list(outcomes.values()), out)
    _store(reproduction)
    return reproduction


def _store(reproduction: Reproduction) -> None:
    """Write the index, by which the report can be made again, and the rows as JSON."""
    index = {
        "mode": reproduction.mode,
        "build": core.build(),
        "claims": [
            {
                "name": o.claim.name,
                "results": [
                    {"hosts": kind, "curve": curve, "at": at, "key": r.manifest["key"]}
                    for (kind, curve, at), r in o.results.items()
                ],
            }
            for o in reproduction.outcomes
        ],
    }
    replace_text(reproduction.path / INDEX, json.dumps(index) + "\n")
    replace_text(reproduction.path / VERDICT, as_json(reproduction))


def as_json(reproduction: Reproduction) -> str:
    """The rows as ``--json`` prints them: a list of objects."""
    return json.dumps([row.as_dict() for row in reproduction.rows()], indent=1) + "\n"


def load_reproduction(directory: Path) -> Reproduction:
    """Open what an earlier ``firstlight reproduce`` left in ``directory``."""
    try:
        index = json.loads((directory / INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        raise ResultError(f"{directory}: not a reproduction ({e})") from None
    claims = {c.name: c for c in find()}
    outcomes = []
    for entry in index["claims"]:
        if entry["name"] not in claims:
            raise ResultError(f"{directory}: the claim {entry['name']} is no longer among the experiments")
        results = {
            (r["hosts"], r["curve"], tuple(r["at"])): load(directory / STORE / r["key"])
            for r in entry["results"]
        }
        outcomes.append(Outcome(claims[entry["name"]], index["mode"], results))
    return Reproduction(index["mode"], outcomes, directory)
