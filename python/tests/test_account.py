"""``firstlight explain``: what it says of a run, and what it answers to wrong input."""

import re
from pathlib import Path
from typing import Any

import firstlight as fl
import networks
import pytest
from firstlight.figures.account import bands, first_points, sweep_account_figure
from firstlight.pages.report import write_comparison, write_result, write_sweep
from firstlight.runs.account import PHRASES, accounts, chosen, duration, picoseconds
from firstlight.runs.compare import Comparison
from firstlight.runs.job_account import job_account, message_account
from firstlight.runs.result import Result
from firstlight.runs.without import blamed, rerun, worth

INCAST = f"""
duration = "1s"
{networks.INCAST}
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


def test_each_cause_has_a_phrase() -> None:
    source = Path(__file__).parents[2] / "crates" / "lab" / "src" / "measure" / "account" / "cause.rs"
    names = set(re.findall(r'Cause::\w+ => "(\w+)"', source.read_text()))
    assert len(names) > 20 and names <= PHRASES.keys(), names - PHRASES.keys()


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
    assert " dropped at host0.port at " in sentence and ": the queue was full, behind " in sentence
    assert "100 % of them of answers" in sentence


def test_a_loss_stands_beside_the_time_that_it_took(stored: Path) -> None:
    for account in accounts(fl.load(stored)).values():
        sentence = account.sentence()
        if " dropped at " in sentence:
            before = sentence.split("bytes ")[0].rstrip(" (:")
            losses = ("repaired", "retransmission timeout", "tail loss probe", "reordering window")
            assert before.endswith(losses), sentence


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


MIXED = f"""
duration = "1s"
{networks.INCAST}
[[flows]]
from = "host1"
to = "host2"
size = "1kB"
[[flows]]
from = "host1"
to = "host3"
start = "999ms"
"""


@pytest.mark.parametrize(
    ("account", "flows"),
    [
        ("true", {0, 2, 3, 4, 5}),
        ('["answers"]', {2, 3, 4, 5}),
        ('["flows"]', {0}),
        ('["f*", "flow 2"]', {0, 2}),
        ('["slowest 2"]', {4, 5}),
        ('["slowest 2", "slowest 1", "flow 0"]', {0, 4, 5}),
        ('["slowest 99"]', {0, 2, 3, 4, 5}),
    ],
)
def test_accounts_of_chosen_flows_are_those_of_all(tmp_path: Path, account: str, flows: set[int]) -> None:
    (tmp_path / "all.toml").write_text(f"{MIXED}[measure]\naccount = true\n")
    (tmp_path / "some.toml").write_text(f"{MIXED}[measure]\naccount = {account}\naccount_events = 1\n")
    every, some = fl.run(tmp_path / "all.toml"), fl.run(tmp_path / "some.toml")
    assert some.digest == every.digest
    rows = every.table("account")
    wanted = rows[rows["flow"].isin(flows)].reset_index(drop=True)
    assert wanted.equals(some.table("account")) and set(wanted["flow"]) == flows
    (slowest,) = chosen(some, None, 1)
    assert set(some.table("account_events")["flow"]) == {slowest.flow}


def test_flows_that_are_not_chosen_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "some.toml").write_text(f'{MIXED}[measure]\naccount = ["flow 0"]\n')
    result = fl.run(tmp_path / "some.toml")
    with pytest.raises(fl.ResultError, match=r"--flow 2: measure\.account = \['flow 0'\] does not choose"):
        chosen(result, 2, 1)
    with pytest.raises(fl.ResultError, match="--flow 1: this flow was not complete"):
        chosen(result, 1, 1)
    with pytest.raises(fl.ResultError, match=r"flow \d is on its path, and has no account"):
        job_account(result, "answers:0")
    result.save(tmp_path / "result")
    assert "Of the flows that measure.account" in write_result(fl.load(tmp_path / "result")).read_text()


@pytest.mark.parametrize(
    ("account", "message"),
    [
        ("[]", "an empty list chooses no flow: name some, or write true or false"),
        ('["answer"]', "no workload with flows is called 'answer': did you mean answers?"),
        (
            '["nobody*"]',
            "no workload with flows is called 'nobody*': write the name of a workload, 'flow 0' or",
        ),
        ('["flow 6"]', "there is no 'flow 6': write 'flow 0' to 'flow 5'"),
        ('["flow x"]', "there is no 'flow x': write 'flow 0' to 'flow 5'"),
        ('["message 0"]', "there is no message: take it out"),
        ('["slowest 0"]', "write for example 'slowest 5': a whole number from 1"),
        ('["slowest few"]', "write for example 'slowest 5': a whole number from 1"),
        ('["flow 1", "flow 1"]', "'flow 1' is listed twice: name it once"),
        ('"slowest 5"', "expected true, false, or a list of flows, found"),
        (
            "3",
            'expected true, false, or a list of flows, found the number 3: write for example ["slowest 5"]',
        ),
        ('[""]', "expected"),
        ("[3]", "expected"),
    ],
)
def test_wrong_choices_say_what_would_be_right(tmp_path: Path, account: str, message: str) -> None:
    (tmp_path / "some.toml").write_text(f"{MIXED}[measure]\naccount = {account}\n")
    with pytest.raises(fl.SpecError, match=f"measure.account: {re.escape(message)}"):
        fl.run(tmp_path / "some.toml")


TAIL = """
duration = "3s"
[fabric]
kind = "star"
hosts = 4
[hosts]
rate = "10Gbps"
delay = "1us"
mtu = "1500B"
[switch]
queue = 1
[tcp]
tail_loss_probe = false
[[flows]]
from = "host1"
to = "host0"
size = "1000B"
[[flows]]
from = "host2"
to = "host0"
size = "1000B"
start = "50ns"
[[flows]]
from = "host3"
to = "host0"
size = "1000B"
start = "100ns"
[measure]
account = true
"""


@pytest.fixture(scope="module")
def tail(tmp_path_factory: pytest.TempPathFactory) -> fl.Result:
    """Three packets meet at a queue of one: that of flow 2 is lost, and a timeout sends it again."""
    file = tmp_path_factory.mktemp("tail") / "tail.toml"
    file.write_text(TAIL)
    return fl.run(file)


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        ("queueing", "--without queueing: write rto, loss, pause, night, or queueing:N for flow N"),
        ("queueing:4", "--without queueing:4: there is no flow 4: the run has flows 0 to 3"),
        ("pause", r"this experiment has no \[pfc\]"),
        ("night", "this experiment has no circuit switch"),
    ],
)
def test_wrong_causes_say_what_would_be_right(stored: Path, cause: str, message: str) -> None:
    from firstlight.cli import app

    with pytest.raises(fl.FirstlightError, match=message):
        app(["explain", str(stored), "--without", cause], standalone_mode=False)


def test_command_says_what_a_cause_was_worth(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from firstlight.cli import app

    app(["explain", str(stored), "--without", "loss"], standalone_mode=False)
    out = capsys.readouterr().out
    assert "without loss" in out and "median of 4 flows" in out and "p99 of 4 flows" in out


def test_without_loss_queues_take_all(tail: fl.Result) -> None:
    after = rerun(tail, "loss")
    assert after.ports["dropped"].sum() == 0 and tail.ports["dropped"].sum() > 0
    rows = {row.what: row for row in worth(tail, after, [2])}
    assert rows["flow 2"].before - rows["flow 2"].after > 200_000
    assert blamed(accounts(tail)[2], "loss") > 200_000 * 10**6
    # Flow 2's packet comes 100 ns after flow 0's and waits until that and flow 1's have left.
    assert after.flows["fct_us"][2] == pytest.approx(4.192 + 0.0416 + 4 * 1052 * 0.0008 + 2 - 0.1, abs=1e-6)


def test_a_run_is_repeated_from_any_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The experiment's file was named relative to a directory, and names a file beside it."""
    (tmp_path / "hosts.txt").write_text("switch s\nhost a s 10Gbps 1us\nhost b s 10Gbps 1us\n")
    (tmp_path / "two.toml").write_text(
        'duration = "10ms"\n[fabric]\nkind = "graph"\nfile = "hosts.txt"\n'
        '[[flows]]\nfrom = "host0"\nto = "host1"\nsize = "10kB"\n[measure]\naccount = true\n'
    )
    monkeypatch.chdir(tmp_path)
    first = fl.run("two.toml")
    monkeypatch.chdir("/")
    assert rerun(first, "loss").digest == first.digest


def test_a_class_of_the_caller_is_not_repeated(tmp_path: Path) -> None:
    class Mine:
        def grow(self, window: Any, ack: Any) -> None:
            window.cwnd += 1

    file = tmp_path / "tail.toml"
    file.write_text(TAIL)
    result = fl.run(file, {"tcp.cc": "mine"}, congestion_control={"mine": Mine})
    with pytest.raises(fl.FirstlightError, match='"mine" is a class of the Python program that made it'):
        rerun(result, "loss")


def test_without_timeouts_a_lost_tail_is_sent_again_after_a_round_trip(tail: fl.Result) -> None:
    after = rerun(tail, "rto")
    assert blamed(accounts(tail)[2], "rto") > 200_000 * 10**6
    # After the handshake's sample of 4.192 us the timeout is SRTT + 4 RTTVAR, three times that in whole
    # microseconds.
    wait = {part.name: part.time_ps for part in accounts(after)[2].parts()}["rto"]
    assert wait == 3 * 4_000_000
    assert after.flows["fct_us"][2] < 30


def test_without_a_flow_others_do_not_queue_behind_it(tail: fl.Result) -> None:
    before = accounts(tail)
    behind = blamed(before[1], "queueing:0")
    assert behind == 1052 * 800 - 50_000, "its packet comes 50 ns after flow 0's"
    after = rerun(tail, "queueing:0")
    assert 0 not in accounts(after) and after.flows["start_us"].isna()[0]
    assert accounts(after)[1].total_ps == before[1].total_ps - behind
    assert list(after.flows["sport"]) == list(tail.flows["sport"])
    rows = {row.what: row for row in worth(tail, after, [0, 1])}
    assert rows["flow 0"].after != rows["flow 0"].after, "it has no completion time"
    assert after.manifest["spec"]["leave_out"] == [0]


@pytest.mark.parametrize(
    ("flows", "message"),
    [("[9]", "there is no flow 9: write one of 0 to 2"), ('["a"]', "leave_out")],
)
def test_only_flows_that_there_are_can_be_left_out(tmp_path: Path, flows: str, message: str) -> None:
    (tmp_path / "tail.toml").write_text(f"leave_out = {flows}\n{TAIL}")
    with pytest.raises(fl.FirstlightError, match=message):
        fl.run(tmp_path / "tail.toml")


RACKS = f"""
duration = "1s"
{networks.RACKS}
[measure]
account = true
[[flows]]
from = "host0"
to = "host1"
size = "1000B"
"""


def test_without_nights_days_begin_where_nights_did(tmp_path: Path) -> None:
    (tmp_path / "racks.toml").write_text(RACKS)
    before = fl.run(tmp_path / "racks.toml")
    night = {part.name: part.time_ps for part in accounts(before)[0].parts()}["night"]
    assert night > 0
    after = rerun(before, "night")
    assert after.manifest["spec"]["schedule"] == {"kind": "strobe", "day": "120us", "night": "0s"}
    assert list(after.week["start_us"]) == [0.0, 120.0]
    assert "night" not in {part.name for part in accounts(after)[0].parts()}


def test_without_pauses_queues_grow_instead(tmp_path: Path) -> None:
    text = (
        INCAST.replace("queue = 16", "").replace("[switch]", '[pfc]\nxoff = "30kB"').replace("40kB", "400kB")
    )
    (tmp_path / "paused.toml").write_text(text)
    before = fl.run(tmp_path / "paused.toml")
    assert "pause" in {part.name for account in accounts(before).values() for part in account.parts()}
    after = rerun(before, "pause")
    assert "pause" not in {part.name for account in accounts(after).values() for part in account.parts()}
    assert after.ports["dropped"].sum() == 0


def test_bands_of_completion_times_have_all_flows_and_causes(stored: Path) -> None:
    found = bands(fl.load(stored))
    assert [band.name for band in found] == ["0 to 50 %", "50 to 90 %", "slowest 1 %"]
    assert [band.flows for band in found] == [2, 1, 1]
    assert all(band.shares.sum() == pytest.approx(1) for band in found)
    means = [band.mean_ps for band in found]
    assert means == sorted(means)


def test_report_of_a_run_shows_the_causes_of_its_flows(stored: Path) -> None:
    page = write_result(fl.load(stored)).read_text()
    assert "causes by band of completion times" in page and "measure.account=true" not in page


def test_page_of_a_comparison_shows_the_causes_of_both_runs(stored: Path, tmp_path: Path) -> None:
    result = fl.load(stored)
    linux = Result({**result.manifest, "kernel": {"version": "7", "hz": 250}}, path=stored)
    page = write_comparison(Comparison("x", result, linux, tmp_path)).read_text()
    assert "Simulated hosts. What took" in page and "Linux hosts. What took" in page
    assert {file.name for file in tmp_path.glob("figures/account_*.png")} == {
        "account_simulated.png",
        "account_linux.png",
    }


def plain(folder: Path, text: str = INCAST) -> Result:
    """The stored result of a run without accounts."""
    (folder / "plain.toml").write_text(text.split("[measure]")[0])
    return fl.run(folder / "plain.toml", out=folder / "plain")


def causes(page: str) -> str:
    """The figure of causes of a page."""
    found = re.search(r"<figure(?:(?!<figure).)*What took the time of.*?</figure>", page, re.DOTALL)
    assert found, "the page has the figure"
    return found[0]


def test_report_of_a_run_without_account_shows_the_causes_of_a_second_run(
    tmp_path: Path, stored: Path
) -> None:
    page = write_result(plain(tmp_path)).read_text()
    assert causes(page) == causes(write_result(fl.load(stored)).read_text())
    assert "measure.account=true" not in page
    short = plain(tmp_path / "..", INCAST.replace('"1s"', '"20us"', 1))
    assert "fct_us" in short.flows and "causes" not in write_result(short).read_text(), "no flow is complete"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"counts": {"packet_hops": 10**7 + 1}},
            "have 10,000,001 packet-hops, and a report repeats 10,000,000",
        ),
        ({"digest": "0" * 16}, "a second run is another one: digest"),
        ({"inputs": {"gone": "0"}}, "files that the experiment names have changed"),
    ],
)
def test_report_says_why_it_has_no_causes(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    result = plain(tmp_path)
    changed = Result({**result.manifest, **change}, path=result.path)
    page = write_result(changed).read_text()
    assert reason in page and "--set measure.account=true" in page


JOBS = """
duration = "1s"
[fabric]
kind = "leaf_spine"
racks = 3
hosts_per_rack = 2
spines = 1
[links]
rate = "10Gbps"
[hosts]
rate = "10Gbps"
delay = "1us"
[[workload]]
name = "write"
kind = "hdfs"
files = 4
file_size = "300kB"
block = "100kB"
[measure]
account = true
"""


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "jobs.toml").write_text(JOBS)
    fl.run(folder / "jobs.toml").save(folder / "result")
    return folder / "result"


def test_a_job_s_times_add_up_to_its_duration(jobs: Path) -> None:
    result = fl.load(jobs)
    for _, row in result.jobs.iterrows():
        job = job_account(result, str(row["job"]))
        assert job.total.total_ps == picoseconds(float(row["duration_us"]))
        assert sum(step.time_ps for step in job.steps) == job.total.total_ps
        assert "unknown" not in {part.name for part in job.total.parts()}
        slowest = max(job.steps, key=lambda step: step.time_ps)
        assert job.sentence().startswith(f"job {row['job']} of write took {duration(job.total.total_ps)}, ")
        assert f"parts of its path was {slowest.name}: {duration(slowest.time_ps)}." in job.sentence()


def test_rounds_of_flows_are_jobs_of_one_part(stored: Path) -> None:
    result = fl.load(stored)
    job = job_account(result, "answers:0")
    (step,) = job.steps
    assert (
        step.name.startswith("flow ") and job.total.total_ps == accounts(result)[step.account.flow].total_ps
    )


def test_a_job_waits_for_its_last_flow_to_start(tmp_path: Path) -> None:
    """Two flows that do not meet: the job is the second's start after the first's, and then the second."""
    (tmp_path / "two.toml").write_text(
        """
        duration = "1s"
        [fabric]
        kind = "star"
        hosts = 3
        [hosts]
        rate = "10Gbps"
        delay = "1us"
        [[workload]]
        name = "two"
        kind = "incast"
        to = "host0"
        size = "1460B"
        jitter = "10ms"
        [measure]
        account = true
        """
    )
    result = fl.run(tmp_path / "two.toml")
    begins = sorted(result.flows["start_us"])
    assert begins[1] - begins[0] > 100, "the flows do not meet"
    times = {part.name: part.time_ps for part in job_account(result, "two:0").total.parts()}
    assert times.pop("waited_for_others") == picoseconds(begins[1]) - picoseconds(begins[0])
    second = result.flows.sort_values("start_us").iloc[1]
    assert sum(times.values()) == picoseconds(float(second["fct_us"]))


def test_command_explains_jobs_and_messages(jobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from firstlight.cli import app

    app(["explain", str(jobs), "--job", "1"], standalone_mode=False)
    out = capsys.readouterr().out
    assert "job 1 of write took" in out and "critical path" in out and "propagation" in out
    path = fl.load(jobs).table("job_paths")
    message = int(path["message"][0])
    app(["explain", str(jobs), "--message", str(message)], standalone_mode=False)
    out = capsys.readouterr().out
    assert f"message {message} took {duration(message_account(fl.load(jobs), message).total_ps)}" in out


def test_a_message_beside_the_critical_paths_is_named(jobs: Path, tmp_path: Path) -> None:
    result = fl.load(jobs)
    on_paths = set(result.table("job_paths")["message"])
    assert set(result.table("message_account")["message"]) <= on_paths
    message = next(number for number in range(1000) if number not in on_paths)
    with pytest.raises(fl.ResultError, match=rf"measure.account=\[\"\*\", \"message {message}\"\]'"):
        message_account(result, message)
    chosen = {"measure.account": ["*", f"message {message}"]}
    named = fl.run(jobs.parent / "jobs.toml", chosen)
    assert named.digest == result.digest
    assert set(named.table("message_account")["message"]) - on_paths == {message}
    assert message_account(named, message).label == "on no job's critical path"
    wrong = {"measure.account": ["message 99999"]}
    with pytest.raises(fl.SpecError, match="there is no 'message 99999': write 'message 0' to 'message"):
        fl.run(jobs.parent / "jobs.toml", wrong)


@pytest.mark.parametrize(
    ("setting", "room"),
    [({"tcp.receive_window": "64kB"}, "receive"), ({"tcp.max_window": 40}, "congestion")],
)
def test_a_sentence_names_the_window_that_was_short(
    tmp_path: Path, setting: dict[str, object], room: str
) -> None:
    """A path of 400 us on which 64 kB or 40 packets are far from filling the link."""
    (tmp_path / "long.toml").write_text(
        """
        duration = "1s"
        [fabric]
        kind = "star"
        hosts = 2
        [hosts]
        rate = "10Gbps"
        delay = "100us"
        [[flows]]
        from = "host0"
        to = "host1"
        size = "5MB"
        [measure]
        account = true
        """
    )
    (account,) = accounts(fl.run(tmp_path / "long.toml", setting)).values()
    assert f" its next data waited for room in the {room} window." in account.sentence()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--job", "9"], "--job 9: there is no such job: write has jobs 0 to 3"),
        (["--job", "9" * 5000], ": there is no such job: write has jobs 0 to 3"),
        (
            ["--without", f"queueing:{'9' * 5000}"],
            ": write rto, loss, pause, night, or queueing:N for flow N",
        ),
        (["--job", "read:0"], "no workload 'read' has jobs: write one of write"),
        (["--message", "99999"], "--message 99999: there is no such message"),
        (["--job", "1", "--flow", "1"], "give one of them"),
        (["--flow", "1", "--slowest", "2"], "give one of them"),
        (["--job", "1", "--without", "loss"], "--without is for flows"),
    ],
)
def test_unknown_jobs_are_refused(jobs: Path, options: list[str], message: str) -> None:
    from firstlight.cli import app

    with pytest.raises(fl.FirstlightError, match=message):
        app(["explain", str(jobs), *options], standalone_mode=False)


def test_result_without_account_says_how_to_get_one(tmp_path: Path) -> None:
    (tmp_path / "plain.toml").write_text(INCAST.split("[measure]")[0])
    with pytest.raises(fl.ResultError, match=r"run it again with --set measure\.account=true"):
        accounts(fl.run(tmp_path / "plain.toml"))


@pytest.mark.parametrize(
    ("time_ps", "text"), [(7, "7 ps"), (1500, "1.5 ns"), (2_000_000, "2 us"), (3 * 10**12, "3 s")]
)
def test_durations_have_their_units(time_ps: int, text: str) -> None:
    assert duration(time_ps) == text


def test_a_sweep_s_report_has_causes_by_point(tmp_path: Path) -> None:
    (tmp_path / "points.toml").write_text(INCAST)
    axes = {"switch.queue": [16, 1000], "seed": [1, 2]}
    done = fl.sweep(tmp_path / "points.toml", {}, axes, out=tmp_path / "points", jobs=1)
    figure = sweep_account_figure(first_points(done), 2)
    for text in (
        "switch.queue = 16",
        "switch.queue = 1000",
        "0 to 50 %: 4 flows",
        "queueing",
        "fast recovery",
    ):
        assert text in figure.svg, text
    page = write_sweep(done).read_text()
    assert figure.caption in page and "--set measure.account=true" not in page
    # A second run of each point records what the first one did not.
    (tmp_path / "plain.toml").write_text(INCAST.split("[measure]")[0])
    plain_points = fl.sweep(tmp_path / "plain.toml", {}, axes, out=tmp_path / "plain", jobs=1)
    assert causes(write_sweep(plain_points).read_text()) == causes(page)


@pytest.mark.parametrize(
    ("settings", "event"),
    [
        ({"tcp.cc": "dctcp", "switch.ecn": 10}, "after a mark"),
        ({"tcp.cc": "vegas"}, "set by the controller"),
        ({"tcp.cc": "newreno", "switch.queue": 30}, "after a fast recovery"),
        ({"tcp.cc": "newreno", "switch.queue": 4, "tcp.tail_loss_probe": False}, "after a timeout"),
    ],
)
def test_waiting_for_the_window_names_the_event_that_had_set_it(
    tmp_path: Path, settings: dict[str, object], event: str
) -> None:
    (tmp_path / "long.toml").write_text(INCAST.replace("40kB", "400kB").replace("queue = 16", "queue = 200"))
    rows = fl.run(tmp_path / "long.toml", settings).table("account")
    window = rows[rows["waiting_for"].str.startswith("congestion_window")]
    others = {"congestion_window (slow start)", f"congestion_window ({event})"}
    if event in ("after a fast recovery", "after a timeout"):
        others |= {"congestion_window (after a fast recovery)", "congestion_window (after a timeout)"}
    found = set(window.loc[window["time_ps"] > 0, "waiting_for"])
    assert f"congestion_window ({event})" in found and found <= others
