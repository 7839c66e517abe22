"""Schedules of message passing: what is generated, and ``firstlight goal`` as a user types it."""

import re
from collections import Counter
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
        # Cells of 3^3 on 4 x 4 ranks: 6 faces of 4 cells, two deep, of 5 values; three sweeps of 3 stages,
        # each forth with 30 values for each of 9 points and back with 5.
        ("bt", 16 * 6 + 16 * 3 * 3 * 2, 16 * 6 * 4 * 9 * 2 * 5 * 8 + 16 * 3 * 3 * 9 * 35 * 8),
        # 25 steps: a row of four sums 350 values and twice one in two rounds, 12 ranks off the diagonal
        # swap 350.
        ("cg", 25 * (16 * 2 * 3 + 12), 25 * 8 * (16 * 2 * (350 + 2) + 12 * 350)),
        # All of the cube but what stays where it is, and four rounds of one complex number.
        ("ft", 16 * 15 + 16 * 4, 64**3 * 16 * 15 // 16 + 16 * 4 * 16),
        ("is", 2 * 16 * 15 + 16 * 4, 16 * 15 * 4 + 2**16 * 4 * 15 // 16 + 16 * 4 * 512 * 4),
        # Ranks 4 x 2 x 2; 32^3, 16^3, 8^3, 4^3, 2^3 and up again: 9 levels of six faces.
        ("mg", 16 * 6 * 9, None),
        ("halo", 16 * 4, 16 * 4 * 65536),
        ("all-to-all", 16 * 15, 16 * 15 * 65536),
        ("all-reduce", 16 * 30, 30 * 65536),
        # 4 x 4: 12 neighbours along each axis.
        ("wavefront", 24, 24 * 65536),
    ],
)
def test_messages_and_bytes_by_hand(name: str, messages: int, volume: int | None) -> None:
    found = sends(generate(name, 16))
    assert len(found) == messages
    if volume is not None:
        assert sum(n for _, _, n in found) == volume
    assert len(sends(generate(name, 16, iterations=2))) == 2 * messages


def test_cg_swaps_with_the_transposed_rank() -> None:
    # 2 rows and 4 columns: pieces of half the rows along a row, a quarter of them to the transposed rank.
    swaps = {(s, d) for s, d, n in sends(generate("cg", 8)) if n == 350 * 8}
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
    ],
)
def test_wrong_words(words: tuple[str, str], message: str) -> None:
    with pytest.raises(fl.SpecError) as caught:
        generate(words[0], int(words[1]))
    assert str(caught.value) == message


def test_wrong_options() -> None:
    with pytest.raises(fl.SpecError, match="--size: ft has its messages' sizes from its class"):
        generate("ft", 4, size=8)
    with pytest.raises(fl.SpecError, match="--class: halo has no classes"):
        generate("halo", 4, problem="S")
    with pytest.raises(fl.SpecError, match="--class: there is no class 'D'"):
        generate("ft", 4, problem="D")


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
