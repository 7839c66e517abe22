"""Trees of pauses, and the figure of pauses, in the report of a run."""

from pathlib import Path

import firstlight as fl
import numpy as np
import pandas as pd
import pytest
from firstlight.figures.pauses import MOST_PORTS, paused_share, pauses_figure
from firstlight.pages.report import write
from firstlight.runs.pauses import MOST_BRANCHES, MOST_ROOTS, Pause, trees, written
from firstlight.runs.result import Result

INCAST = Path(__file__).resolve().parents[2] / "crates/lab/tests/specs/lossless.toml"
CAUSES = ("name", "class", "switch", "egress", "root", "pauses", "paused_us")
Cause = tuple[str, str, str, str, str, int, float]
CHAIN: list[Cause] = [
    ("a->b", "0", "b", "h.port", "h.port", 3, 900.0),
    ("x.nic", "0", "a", "a->b", "h.port", 2, 700.0),
    ("y.nic", "0", "a", "a->b", "h.port", 1, 800.0),
    ("x.nic", "0", "a", "a->b", "a->b", 1, 2500.0),
]


def caused(rows: list[Cause]) -> Result:
    return Result({}, {"pause_causes": {c: [row[i] for row in rows] for i, c in enumerate(CAUSES)}})


def paused(ports: int, events: list[tuple[float, str, bool]], classes: tuple[str, ...] = ("0",)) -> Result:
    rows = [(f"p{i}", c) for i in range(ports) for c in classes]
    pauses = {
        "name": [name for name, _ in rows],
        "class": [c for _, c in rows],
        "pauses": [1] * len(rows),
        "paused_us": [1000.0 * (i + 1) for i in range(len(rows))],
        "victim_us": [float("nan")] * len(rows),
    }
    told = {
        "at_us": [at for at, _, _ in events],
        "name": [name for _, name, _ in events],
        "class": ["0"] * len(events),
        "paused": [begins for _, _, begins in events],
    }
    return Result({}, {"pauses": pauses, "pause_events": told})


def test_a_tree_goes_from_the_root_back_to_the_hosts() -> None:
    first, second = trees(caused(CHAIN))
    assert (first.name, first.pauses, first.paused_us) == ("a->b", 1, 2500.0)
    assert (second.name, second.pauses, second.paused_us) == ("h.port", 6, 2400.0)
    (link,) = second.behind
    assert (link.name, link.switch) == ("a->b", "b")
    assert [(p.name, p.paused_us) for p in link.behind] == [("y.nic", 800.0), ("x.nic", 700.0)]


def test_trees_as_text() -> None:
    assert written(trees(caused(CHAIN))).splitlines() == [
        "a->b: caused 1 pause, 2.5 ms together",
        "└─ x.nic paused by a: 1 pause, 2.5 ms",
        "h.port: caused 6 pauses, 2.4 ms together",
        "└─ a->b paused by b: 3 pauses, 0.9 ms",
        "   ├─ y.nic paused by a: 1 pause, 0.8 ms",
        "   └─ x.nic paused by a: 2 pauses, 0.7 ms",
    ]


def test_ports_behind_a_port_paused_for_another_root_are_in_the_tree() -> None:
    rows: list[Cause] = [*CHAIN[:1], ("z.nic", "0", "a", "a->b", "g.port", 1, 300.0)]
    assert written(trees(caused(rows))).splitlines()[2:] == [
        "g.port: caused 1 pause, 0.3 ms together",
        "└─ a->b, paused for another root then",
        "   └─ z.nic paused by a: 1 pause, 0.3 ms",
    ]


def test_large_trees_are_cut_and_counted() -> None:
    wide: list[Cause] = [
        (f"h{i}.nic", "0", "s", "h.port", "h.port", 1, 1000.0) for i in range(MOST_BRANCHES + 2)
    ]
    lines = written(trees(caused(wide))).splitlines()
    assert (len(lines), lines[-1]) == (MOST_BRANCHES + 2, "└─ and 2 more ports, 2 ms together")
    many: list[Cause] = [("a.nic", "0", "s", f"r{i}", f"r{i}", 1, 1000.0) for i in range(MOST_ROOTS + 1)]
    assert written(trees(caused(many))).splitlines()[-1] == "and 1 more root, 1 ms together"


def test_a_circular_wait_has_no_root() -> None:
    circle: list[Cause] = [
        (f"{a}->{b}", "0", b, f"{b}->{c}", "circle", 1, 1000.0) for a, b, c in ("abc", "bca", "cab")
    ]
    (tree,) = trees(caused(circle))
    assert [p.name for p in tree.behind] == ["a->b", "b->c", "c->a"]
    assert all(p.behind == () for p in tree.behind)


def test_classes_have_their_own_trees() -> None:
    rows: list[Cause] = [("a.nic", c, "s", "h.port", "h.port", 1, 1000.0) for c in "01"]
    assert [tree.name for tree in trees(caused(rows))] == ["h.port, class 0", "h.port, class 1"]


def test_the_trees_of_a_run_hold_all_of_its_pauses() -> None:
    result = fl.run(INCAST)

    def counted(pauses: tuple[Pause, ...]) -> int:
        return sum(p.pauses + counted(p.behind) for p in pauses)

    roots = trees(result)
    assert sum(counted(root.behind) for root in roots) == result.summary["pauses"]
    assert sum(root.paused_us for root in roots) == pytest.approx(result.summary["paused_us"])


def test_paused_shares_by_hand() -> None:
    events = pd.DataFrame({"at_us": [5.0, 15.0, 25.0], "paused": [True, False, True]})
    assert paused_share(events, np.array([0.0, 10.0, 20.0, 30.0])) == pytest.approx([0.5, 0.5, 0.5])
    assert paused_share(events.head(0), np.array([0.0, 10.0])) == pytest.approx([0.0])


def test_the_figure_says_how_much_it_shows() -> None:
    events = [(10.0, "p0", True), (20.0, "p0", False)]
    whole = pauses_figure(paused(1, events))
    assert "1 of 1 ports" in whole.caption and "the last one's end" in whole.caption
    cut = pauses_figure(paused(MOST_PORTS + 5, events))
    assert f"{MOST_PORTS} of {MOST_PORTS + 5}" in cut.caption and "pfc.events" in cut.caption
    assert ">p28<" in cut.svg.replace(" ", "") and ">p4<" not in cut.svg.replace(" ", "")
    assert "Left" not in pauses_figure(paused(2, [])).caption
    assert "p1, class 1" in pauses_figure(paused(2, [], ("0", "1"))).svg


def test_a_report_has_the_trees_and_the_figure(tmp_path: Path) -> None:
    fl.run(INCAST).save(tmp_path / "run")
    page = write(tmp_path / "run").read_text()
    assert "Causes of pauses" in page and 'id="pauses"' in page
    fl.run(INCAST, {"pfc.kind": "off"}).save(tmp_path / "off")
    assert "Causes of pauses" not in write(tmp_path / "off").read_text()
