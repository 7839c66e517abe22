"""Generated schedules of message passing, by hand and as a user runs them."""

import re
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import firstlight as fl
import pytest
from conftest import Command
from firstlight.goal import NAMES, generate

STAR = """\
duration = "2s"

[fabric]
kind = "star"
hosts = 16

[hosts]
rate = "10Gbps"
delay = "1us"
mtu = "1500B"

[[workload]]
kind = "goal"
file = "{file}"
"""


def sends(text: str) -> list[tuple[int, int, int]]:
    """Source, destination and bytes of each send."""
    found = []
    for block in text.split("rank ")[1:]:
        rank = int(block.split(" ", 1)[0])
        found += [(rank, int(d), int(n)) for n, d in re.findall(r"send (\d+)b to (\d+)", block)]
    return found


def test_every_send_has_a_receive() -> None:
    for name in NAMES:
        text = generate(name, 16)
        received = Counter[tuple[int, int, int]]()
        for block in text.split("rank ")[1:]:
            rank = int(block.split(" ", 1)[0])
            received.update((int(s), rank, int(n)) for n, s in re.findall(r"recv (\d+)b from (\d+)", block))
        assert Counter(sends(text)) == received, name
        assert received, name


@pytest.mark.parametrize(
    ("name", "messages", "volume"),
    [
        # Cells of 3^3 on 4 x 4 ranks: 6 faces of 3 of 4 cells, two deep, of 5 values; three sweeps of 3
        # stages, each forth with 30 values for each of 4^2 points and back with 5.
        ("bt", 16 * 6 + 16 * 3 * 3 * 2, 16 * 6 * 3 * 9 * 2 * 5 * 8 + 16 * 3 * 3 * 16 * 35 * 8),
        # 25 steps: a row of four sums 350 values and twice one in two rounds, 12 ranks off the diagonal
        # swap 350.
        ("cg", 25 * (16 * 2 * 3 + 12), 25 * 8 * (16 * 2 * (350 + 2) + 12 * 350)),
        # All of the cube but what stays where it is, and four rounds of one complex number.
        ("ft", 16 * 15 + 16 * 4, 64**3 * 16 * 15 // 16 + 16 * 4 * 16),
        # Buckets and five test keys.
        ("is", 2 * 16 * 15 + 16 * 4, 16 * 15 * 4 + 2**16 * 4 * 15 // 16 + 16 * 4 * 517 * 4),
        # Ranks 4 x 2 x 2; 32^3, 16^3, 8^3 and 4^3 are exchanged three times, 2^3 twice. Blocks of p/4 p/2 p/2
        # have faces of (p/2)^2, (p/4 + 2) p/2 and (p/4 + 2) (p/2 + 2): 256 + 160 + 180 and so on.
        ("mg", 16 * 6 * 14, 16 * 2 * 8 * (3 * (596 + 172 + 56 + 22) + 2 * (1 + 3 + 9))),
        ("halo", 16 * 4, 16 * 4 * 65536),
        ("all-to-all", 16 * 15, 16 * 15 * 65536),
        ("all-reduce", 16 * 30, 30 * 65536),
        # 4 x 4: 12 neighbours along each axis.
        ("wavefront", 24, 24 * 65536),
    ],
)
def test_messages_and_bytes_by_hand(name: str, messages: int, volume: int) -> None:
    found = sends(generate(name, 16))
    assert len(found) == messages
    assert sum(n for _, _, n in found) == volume
    assert len(sends(generate(name, 16, iterations=2))) == 2 * messages


# The messages of rank 0 on the fewest ranks, where all ranks send alike: destination, bytes, number.
FEWEST: list[tuple[str, int, dict[tuple[int, int], int]]] = [
    # Cells of 6^3, two to a rank, one of them at the boundary; forth and back it is the same neighbour, so
    # two faces to each; one stage of each sweep, forth with 30 values for each of 7^2 points and back with 5.
    (
        "bt",
        4,
        {(d, n): k for d in (1, 2, 3) for n, k in [(36 * 2 * 5 * 8, 2), (49 * 30 * 8, 1), (49 * 5 * 8, 1)]},
    ),
    # One row of two, which each sum a half; a rank's transposed block is its own.
    ("cg", 2, {(1, 700 * 8): 25, (1, 8): 50}),
    # A rank has half of the cube, and the other needs half of that.
    ("ft", 2, {(1, 64**3 * 16 // 4): 1, (1, 16): 1}),
    ("is", 2, {(1, 517 * 4): 1, (1, 4): 1, (1, 2**16 * 4 // 4): 1}),
    # Cut once: a whole face of each level, to the same rank on both sides, three times, the coarsest twice.
    ("mg", 2, {(1, p * p * 8): 4 if p == 2 else 6 for p in (32, 16, 8, 4, 2)}),
    ("halo", 4, {(1, 65536): 2, (2, 65536): 2}),
    ("all-to-all", 3, {(1, 65536): 1, (2, 65536): 1}),
    # A third, rounded up, twice two rounds.
    ("all-reduce", 3, {(1, 21846): 4}),
]


@pytest.mark.parametrize(("name", "ranks", "own"), FEWEST)
def test_few_ranks_by_hand(name: str, ranks: int, own: dict[tuple[int, int], int]) -> None:
    found = sends(generate(name, ranks))
    assert Counter((dst, size) for src, dst, size in found if src == 0) == own
    each = Counter(size for src, _, size in found if src == 0)
    for rank in range(ranks):
        assert Counter(size for src, _, size in found if src == rank) == each


def test_bt_sweeps_forth_and_back() -> None:
    # 4 x 4 ranks, cells of 3^3; the third direction leads back along both others.
    found = sends(generate("bt", 16))
    forth, back = ({(s, d) for s, d, n in found if n == 16 * values * 8} for values in (30, 5))
    assert {d for s, d in forth if s == 0} == {4, 1, 15}
    assert {(d, s) for s, d in forth} == back


def test_a_wave_by_hand() -> None:
    assert sorted(sends(generate("wavefront", 4, size=8))) == [(0, 1, 8), (0, 2, 8), (1, 3, 8), (2, 3, 8)]
    second = Counter(sends(generate("wavefront", 4, size=8, iterations=2)))
    second -= Counter(sends(generate("wavefront", 4, size=8)))
    assert sorted(second) == [(0, 2, 8), (1, 0, 8), (1, 3, 8), (3, 2, 8)]


# Messages and computations that must follow each other on 16 ranks, in an iteration.
CHAINS = [
    ("bt", 1 + 3 * 2 * 3, 3),  # the copies, and three stages forth and three back in each of three sweeps
    ("cg", 25 * (2 + 1 + 2 * 2), 25),  # sums in two rounds, the swap, two inner products
    ("ft", 1 + 4, 1),
    ("is", 4 + 1 + 1, 1),
    ("mg", 14 * 3, 14),
    ("halo", 1, 1),
    ("all-to-all", 1, 1),
    ("all-reduce", 2 * 15, 1),
    ("wavefront", 6, 7),  # from corner to corner
]


@pytest.mark.parametrize(("name", "messages", "computations"), CHAINS)
def test_the_longest_chain_by_hand(name: str, messages: int, computations: int) -> None:
    assert longest(generate(name, 16, compute_ns=7)) == (messages, computations)
    if name != "wavefront":
        assert longest(generate(name, 16, compute_ns=7, iterations=3)) == (3 * messages, 3 * computations)


@pytest.mark.parametrize(("name", "messages", "computations"), CHAINS)
def test_a_run_has_the_longest_chain_of_its_schedule(
    name: str, messages: int, computations: int, tmp_path: Path
) -> None:
    """A run has the schedule's bytes, and its longest path as many computations."""
    (tmp_path / "plain.goal").write_text(text := generate(name, 16))
    (tmp_path / "computing.goal").write_text(generate(name, 16, compute_ns=1_000_000))
    file = tmp_path / "star.toml"
    file.write_text(STAR.format(file="plain.goal"))
    base = fl.run(file)
    assert base.jobs.sent_bytes.tolist() == [sum(n for _, _, n in sends(text))]
    computing = fl.run(file, {"workload.0.file": "computing.goal"})
    assert least_us(computing) - least_us(base) == pytest.approx(1e3 * computations, abs=1e-3)
    assert computing.summary["job_mean_us"] >= base.summary["job_mean_us"] + 900 * computations


def least_us(result: fl.Result) -> float:
    """The time of a run's longest path."""
    return result.summary["job_mean_us"] / result.summary["job_slowdown_mean"]


def longest(text: str) -> tuple[int, int]:
    """Messages, and then computations, of the longest path through a schedule."""
    before: dict[tuple[int, str], list[tuple[int, str]]] = {}
    what: dict[tuple[int, str], tuple[int, int]] = {}
    sent: dict[tuple[int, int], list[tuple[int, str]]] = {}
    received: dict[tuple[int, int], list[tuple[int, str]]] = {}
    for block in text.split("rank ")[1:]:
        rank = int(block.split(" ", 1)[0])
        for label, action, number in re.findall(r"(\w+): (\w+) (\d+)", block):
            what[rank, label] = (action == "recv", action == "calc" and int(number) > 0)
            before[rank, label] = []
        for later, earlier in re.findall(r"(\w+) requires (\w+)", block):
            before[rank, later].append((rank, earlier))
        for label, peer in re.findall(r"(\w+): send \w+ to (\d+)", block):
            sent.setdefault((rank, int(peer)), []).append((rank, label))
        for label, peer in re.findall(r"(\w+): recv \w+ from (\d+)", block):
            received.setdefault((int(peer), rank), []).append((rank, label))
    for ends, operations in received.items():
        for receive, send in zip(operations, sent[ends], strict=True):
            before[receive].append(send)
    lengths: dict[tuple[int, str], tuple[int, int]] = {}
    for operation in TopologicalSorter(before).static_order():
        reached = max((lengths[b] for b in before[operation]), default=(0, 0))
        lengths[operation] = (reached[0] + what[operation][0], reached[1] + what[operation][1])
    return max(lengths.values())


def test_cg_swaps_with_the_transposed_rank() -> None:
    # 2 rows and 4 columns: a quarter of the rows, also along a row of ranks, where each sums its half.
    found = {(s, d) for s, d, n in sends(generate("cg", 8)) if n == 350 * 8}
    assert {d for s, d in found if s == 0} == {1, 2}
    swaps = {(s, d) for s, d in found if s // 4 != d // 4}
    assert swaps == {(2, 4), (3, 5), (4, 2), (5, 3)}


def test_a_wave_starts_in_each_corner() -> None:
    text = generate("wavefront", 9, size=8, iterations=4, compute_ns=10)
    firsts = [block for block in text.split("rank ")[1:] if "calc 10\nl2: send" in block]
    assert [block[0] for block in firsts] == ["0"]
    assert text.count("calc 10") == 4 * 9


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("cg", "12"), "--ranks: cg runs on a power of two ranks, not on 12: write 2, 4, 8 or so"),
        (("bt", "8"), "--ranks: bt runs on a square of ranks, not on 8: write 4, 9, 16 or so"),
        (("lu", "8"), f"there is no application 'lu': write one of {', '.join(NAMES)}"),
        (("halo", "1"), "--ranks: halo on one rank sends nothing: write 2 or more"),
        (
            ("halo", "1000000000"),
            "--ranks: it would have more than 20000000 operations: use fewer ranks or iterations",
        ),
        (("halo", f"{2**40}"), "ranks and iterations are below 2^32, sizes and computations below 2^64"),
    ],
)
def test_wrong_arguments_are_named(words: tuple[str, str], message: str) -> None:
    with pytest.raises(fl.SpecError) as caught:
        generate(words[0], int(words[1]))
    assert str(caught.value) == message


def test_options_of_other_applications_are_named() -> None:
    with pytest.raises(fl.SpecError, match="--size: ft has its messages' sizes from its class"):
        generate("ft", 4, size=8)
    with pytest.raises(fl.SpecError, match="halo has no classes"):
        generate("halo", 4, problem="S")
    with pytest.raises(fl.SpecError, match="ft has no class 'D': write one of S, W, A"):
        generate("ft", 4, problem="D")


def test_a_generated_schedule_runs_as_its_file_does(tmp_path: Path) -> None:
    """The digest is that of the same schedule in a file; ranks, size, iterations and computation count."""
    for name, more, options in (
        ("cg.W", "", {"problem": "W"}),
        ("bt", "ranks = 9\niterations = 2", {"ranks": 9, "iterations": 2}),
        ("halo", 'size = "3kB"\ncompute = "5us"', {"size": 3000, "compute_ns": 5000}),
    ):
        base = name.split(".")[0]
        (tmp_path / "x.goal").write_text(generate(base, **{"ranks": 16, **options}))  # type: ignore[arg-type]
        of_file, generated = tmp_path / "file.toml", tmp_path / "generated.toml"
        of_file.write_text(STAR.format(file="x.goal"))
        generated.write_text(STAR.replace('file = "{file}"', f'application = "{name}"\n{more}'))
        assert fl.run(generated).digest == fl.run(of_file).digest, name


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('application = "cg.D"', "14:15: workload.0.application: cg has no class 'D'"),
        ('application = "bt"\nranks = 8', "15:9: workload.0.ranks: bt runs on a square of ranks, not on 8"),
        ('application = "ft"\nsize = "8B"', "15:8: workload.0.size: ft has its messages' sizes"),
        ('application = "halo"\nranks = 17', "workload.0.ranks: there are 16 hosts"),
        ('application = "halo"\nfile = "x.goal"', "14:15: workload.0.application: there is a file as well"),
        ('file = "x.goal"\niterations = 2', "15:14: workload.0.iterations: has no effect"),
        ("", 'workload.0.file: missing: write for example file = "trace.goal", or application = "cg.A"'),
    ],
)
def test_wrong_keys_are_named(lines: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(STAR.replace('file = "{file}"', lines))
    with pytest.raises(fl.SpecError) as caught:
        fl.inspect(file)
    assert message in str(caught.value)


def test_generated_and_replayed(command: Command, tmp_path: Path) -> None:
    for name in NAMES:
        written = command("goal", "generate", name, "--ranks", "16", "--out", f"{name}.goal")
        assert (written.returncode, written.stdout) == (0, ""), written.stderr
        file = tmp_path / f"{name}.toml"
        file.write_text(STAR.format(file=f"{name}.goal"))
        result = fl.run(file)
        assert result.summary["jobs_complete"] == 1, name
        assert result.summary["job_slowdown_mean"] >= 1, name
        assert result.manifest["finished"], name
    shown = command("goal", "generate", "halo", "--ranks", "4", "--size", "10")
    assert shown.stdout.startswith("num_ranks 4\nrank 0 {\nl1: send 10b to ")
    wrong = command("goal", "generate", "cg", "--ranks", "3")
    assert (wrong.returncode, "cg runs on a power of two ranks" in wrong.stderr) == (2, True)
