"""``firstlight explain``: what it says of a run, and what it answers to wrong input."""

from pathlib import Path

import firstlight as fl
import pytest
from firstlight.runs.account import accounts, chosen, duration

INCAST = """
duration = "1s"
[fabric]
kind = "star"
hosts = 5
[hosts]
rate = "10Gbps"
delay = "1us"
mtu = "1500B"
[switch]
queue = 16
[[workload]]
name = "answers"
kind = "incast"
to = "host0"
size = "40kB"
[measure]
account = true
account_events = 2
"""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("account")
    (folder / "incast.toml").write_text(INCAST)
    result = fl.run(folder / "incast.toml")
    result.save(folder / "result")
    return folder / "result"


def test_times_add_up_to_completion_times(stored: Path) -> None:
    result = fl.load(stored)
    for flow, account in accounts(result).items():
        assert account.total_ps == round(float(result.flows["fct_us"][flow]) * 1e6)
        for column in ("cause", "waiting_for", "where", "who"):
            assert sum(part.time_ps for part in account.parts(column)) == account.total_ps
    events = result.table("account_events")
    assert events["flow"].nunique() == 2, "the slowest two"
    for number, rows in events.groupby("flow"):
        assert rows["time_ps"].sum() == accounts(result)[int(str(number))].total_ps
        assert list(rows["at_ps"]) == [0, *rows["time_ps"].cumsum()][:-1], "without gaps, in order"


def test_the_slowest_flow_s_sentence_names_the_loss(stored: Path) -> None:
    (slowest,) = chosen(fl.load(stored), None, 1)
    assert {"rto", "tail_probe", "fast_recovery"} & {part.name for part in slowest.parts()}
    sentence = slowest.sentence()
    assert sentence.startswith(f"flow {slowest.flow} took {duration(slowest.total_ps)}, ")
    assert "dropped at host0.port" in sentence


def test_command_prints_sentence_bars_and_chain(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from firstlight.cli import app

    app(["explain", str(stored), "--slowest", "1", "--events", "3"], standalone_mode=False)
    out = capsys.readouterr().out
    assert "took" in out and "waiting for" in out and "propagation" in out
    assert "shorter)" in out, "three events of more"


@pytest.mark.parametrize(
    ("flow", "message"),
    [(99, "there is no such flow: the run has flows 0 to 3")],
)
def test_unknown_flow_is_refused(stored: Path, flow: int, message: str) -> None:
    with pytest.raises(fl.ResultError, match=message):
        chosen(fl.load(stored), flow, 1)


def test_result_without_account_says_how_to_get_one(tmp_path: Path) -> None:
    (tmp_path / "plain.toml").write_text(INCAST.split("[measure]")[0])
    with pytest.raises(fl.ResultError, match=r"run it again with --set measure\.account=true"):
        accounts(fl.run(tmp_path / "plain.toml"))


@pytest.mark.parametrize(
    ("time_ps", "text"), [(7, "7 ps"), (1500, "1.5 ns"), (2_000_000, "2 us"), (3 * 10**12, "3 s")]
)
def test_durations_have_their_units(time_ps: int, text: str) -> None:
    assert duration(time_ps) == text
