"""Wrong, hostile and damaged input, as a user may type or find it: one error that says what is wrong, in
bounded time, and nothing of the user's is overwritten."""

import contextlib
import errno
import io
import os
import shlex
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import SMALL
from firstlight.cli import app, guarded

STAR = """\
duration = "1ms"

[fabric]
kind = "star"
hosts = 8

[hosts]
rate = "10Gbps"
"""
FILE = f'{STAR}\n[[workload]]\nkind = "file"\nfile = "f"\n'
SHORT = f'{STAR}\n[[workload]]\nkind = "permutation"\nsize = "10kB"\n'
SWEEP = f"{SHORT}\n[sweep]\n"


def said(*words: str | Path) -> tuple[int, str]:
    """The exit code of a command that runs in this process, and what it writes to standard error."""
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        code = guarded(lambda: app([str(w) for w in words], standalone_mode=False, prog_name="firstlight"))
    return code, errors.getvalue()


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1\n0 1 3 100 1000 nan\n", "f:2:16: workload.0.file: expected its start in seconds, found 'nan'"),
        (b"1\n0 1 3 100 1000 1e400\n", "found '1e400'"),
        (b"1\n0 1 3 100 99999999999999999999999 0\n", "write a whole number from 1 to"),
        (b"1\n\xd9\xa0 1 3 100 10 0\n", "write a whole number from 0 to 7"),  # a digit that is not ASCII
        (b"\0" * 5000, r"found '\u{0}\u{0}"),
        (b"\x1f\x8b\x08\0garbage\xff", "cannot read f: invalid utf-8"),
        (b"PK\x03\x04\0\0\0\0", "expected how many flows follow"),
        (b"1 " * 500_000, "f:1:3: workload.0.file: '1' is one word too many"),
    ],
)
def test_wrong_flow_lists(place: Path, content: bytes, message: str) -> None:
    (place / "x.toml").write_text(FILE)
    (place / "f").write_bytes(content)
    code, text = said("inspect", "x.toml")
    assert code == 2 and message in text and len(text) < 3000
    assert all(c.isprintable() or c == "\n" for c in text)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, "it is a pipe or a device: name a file"),
        (lambda file: file.symlink_to("/dev/zero"), "it is a pipe or a device: name a file"),
        (lambda file: file.symlink_to("/dev/tty"), "workload.0.file: cannot read f"),
        (lambda file: file.symlink_to("/proc/self/mem"), "Input/output error"),
        (lambda file: file.symlink_to("f"), "Too many levels of symbolic links"),
        (Path.mkdir, "Is a directory"),
    ],
)
def test_files_that_are_none(place: Path, make: Callable[[Path], None], message: str) -> None:
    (place / "x.toml").write_text(FILE)
    make(place / "f")
    code, text = said("inspect", "x.toml")
    assert code == 2 and "workload.0.file: cannot read f" in text and message in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SHORT.replace("duration", "durati\u043en"), "this is not TOML"),  # a Cyrillic letter
        (SHORT.replace("duration =", "duration\u00a0="), "this is not TOML"),
        (SHORT.replace("\n", "\r"), "this is not TOML"),
        (f'{SHORT}"\u202e\u200bx" = 1\n', r"workload.0.\u{202e}\u{200b}x: unknown key"),
        (f'{SHORT}"\\u001b[31m\\u0007" = 1\n', r"workload.0.\u{1b}[31m\u{7}: unknown key"),
        (
            "".join(f"k{i} = {i}\n" for i in range(50_000)) + SHORT,
            "more problems follow: correct these first",
        ),
        (f"x = {'[' * 20_000}{']' * 20_000}\n", "this is not TOML"),
        (SHORT.replace('"1ms"', '"1e400ms"'), "duration: 'e400ms' is not a unit of time"),
        (SHORT.replace('"10kB"', '"18446744073709551615B"'), "is out of range"),
        (SHORT.replace("hosts = 8", "hosts = 1000000000"), "out of range"),
        (SHORT.replace('"10Gbps"', '"1bps"'), "takes longer than 1s"),
    ],
)
def test_wrong_experiments(place: Path, text: str, message: str) -> None:
    (place / "x.toml").write_text(text, encoding="utf-8", newline="")
    code, errors = said("inspect", "x.toml")
    assert code == 2 and message in errors
    assert len(errors.splitlines()) <= 101
    assert all(c.isprintable() or c == "\n" for c in errors)


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ("seed = [[1], [2]]", r"seed: \[1\] is not a number, a text or true/false"),
        ("seed = [1979-05-27]", "seed: 1979-05-27 is not a number, a text or true/false"),
        ("seed = [nan]", "expected a whole number"),
        ("seed = [1, true]", "expected a whole number, found true"),
        ('name = ["../a", "b"]', "cannot be the name of a directory"),
        ('"sweep.seed" = [1]', "sweep.seed"),
        ('"" = [1]', "sweep.: unknown key"),
        (
            '"workload.-1.size" = ["1kB"]',
            "workload is a list of tables: name one by its number, as workload.0",
        ),
        ('"workload.99.size" = ["1kB"]', "workload has 1 entry: write workload.0"),
        ('"workload.18446744073709551616.size" = ["1kB"]', "workload has 1 entry: write workload.0"),
    ],
)
def test_wrong_axes(place: Path, axis: str, message: str) -> None:
    (place / "x.toml").write_text(f"{SWEEP}{axis}\n")
    code, errors = said("sweep", "x.toml")
    assert code == 2
    assert message.replace("\\", "") in errors
    assert not (place / "results").exists()


def test_without_its_kind_a_fabric_needs_only_that(place: Path) -> None:
    (place / "x.toml").write_text(SHORT.replace('kind = "star"\n', ""))
    expected = 'error: x.toml:3:2: fabric.kind: missing: write for example kind = "hybrid" in [fabric]\n'
    assert said("inspect", "x.toml") == (2, expected)


def test_a_list_of_tables_is_no_sweep(place: Path) -> None:
    (place / "x.toml").write_text(f"{SHORT}\n[[sweep]]\nseed = [1]\n")
    expected = "error: x.toml: sweep: expected a table, found a list: write [sweep]\n"
    assert said("sweep", "x.toml") == (2, expected)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sweep", "x.toml", "--seeds", "99999999999"], "seeds = 99,999,999,999: at most 1,000,000"),
        (["sweep", "x.toml", "--seeds", "3", "--set", f"seed={2**63 - 1}"], "is too large"),
        (["sweep", "x.toml", "--out", "s\udcff"], r"s\xff: its name is not UTF-8; name another directory"),
        (["sweep", "x.toml", "--shard", "1/0"], "such as 3/64"),
        (["sweep", "x.toml", "--collect"], "have no result yet"),
        (["run", "\x1b[31mno.toml"], r"error: \x1b[31mno.toml: no such file"),
        (["inspect", "x.toml", "--set", "seed=1\n[evil]\nx=1"], r"found the text"),
        (["inspect", "x.toml", "--set", f"{'a' * 100_000}=1"], "unknown key"),
        (["inspect", "x.toml", "--set", f"measure.queues={'[' * 5000}"], "measure.queues"),
        (["inspect", "x.toml", "--set", "tcp.cc=./x.so"], "tcp.cc: ./x.so: cannot be loaded"),
        (["reproduce", ""], "no reproduction is called ''"),
        (["reproduce", "--out", ""], "an empty name; name a file or a directory"),
        (["run", "x.toml", "--out", "x.toml/r"], "x.toml is a file; name another place"),
        (["run", "x.toml", "--trace", "t", "--trace-flows", "5-2"], "it ends before it begins: write 2-5"),
        (["run", "x.toml", "--trace", "t", "--trace-flows", "9" * 5000], "numbers of flows are needed"),
        (["run", "x"], "x: no such file: did you mean x.toml?"),
        (["run", "x.toml", "--trace", "no/t.pftrace"], "there is no directory no; make it first"),
        (["reproduce", "/"], "no reproduction is called"),
        (["cc", "new", "fn"], "is a word of Rust"),
        (["cc", "new", "../x"], "name the crate with lower-case letters"),
        (["report", "."], "holds no result"),
        (["rerun", "x.toml"], "not a bundle; name what `firstlight bundle` wrote"),
    ],
)
def test_wrong_words(place: Path, words: list[str], message: str) -> None:
    (place / "x.toml").write_text(f'{SWEEP}"tcp.cc" = ["cubic"]\n' if words[0] == "sweep" else SHORT)
    (place / "x.so").write_bytes(b"\x7fELF" + bytes(60))
    before = {file: file.read_bytes() for file in place.iterdir()}
    code, errors = said(*words)
    assert code == 2 and message in errors and len(errors) < 3000
    assert {file: file.read_bytes() for file in place.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize(
    "words",
    [
        ["run", "x.toml", "--trace", "mine.toml", "--out", "r"],
        ["goal", "generate", "halo", "--ranks", "4", "--out", "mine.toml"],
        ["run", "x.toml", "--out", "mine.toml"],
        ["sweep", "s.toml", "--out", "mine.toml"],
        ["bundle", "done", "--out", "mine.toml"],
    ],
)
def test_no_command_overwrites_a_user_s_file(place: Path, words: list[str]) -> None:
    (place / "x.toml").write_text(SHORT)
    (place / "s.toml").write_text(f"{SWEEP}seed = [1]\n")
    (place / "mine.toml").write_text(SMALL)
    if words[0] == "bundle":
        assert said("run", "x.toml", "--out", "done")[0] == 0
    code, errors = said(*words)
    assert code == 2 and "mine.toml" in errors and len(errors.splitlines()) <= 2
    assert (place / "mine.toml").read_text() == SMALL


def test_a_bundle_stays_in_its_folder(place: Path) -> None:
    with zipfile.ZipFile("evil.zip", "w") as archive:
        archive.writestr("../../evil.txt", "x")
        archive.writestr("/evil.txt", "x")
        points = '[{"label": "a", "experiment": "../../../etc/passwd", "result": "/etc"}]'
        archive.writestr("bundle.json", f'{{"version": "1", "points": {points}}}')
    code, errors = said("rerun", "evil.zip")
    assert code == 2 and "is not in the bundle" in errors
    assert not list(place.parent.rglob("evil.txt"))


def test_printed_commands_work_in_a_folder_with_blanks(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = place / "a b"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "x.toml").write_text(SHORT)
    app(["cc", "new", "mine"], standalone_mode=False)
    app(["run", "x.toml", "--out", "c d"], standalone_mode=False)
    app(["bundle", "c d"], standalone_mode=False)
    printed = [shlex.split(line) for line in capsys.readouterr().out.splitlines() if "firstlight r" in line]
    assert [words[-1] for words in printed] == [
        f"tcp.cc={folder}/mine/target/release/libmine.so",
        "c d.bundle.zip",
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, "it is no file; move it out of done"),
        (lambda file: file.symlink_to("/dev/zero"), "it is no file; move it out of done"),
        (lambda file: file.symlink_to("missing"), "it is no file; move it out of done"),
    ],
)
def test_a_bundle_holds_files_alone(place: Path, make: Callable[[Path], None], message: str) -> None:
    (place / "x.toml").write_text(SHORT)
    assert said("run", "x.toml", "--out", "done")[0] == 0
    make(place / "done" / "more")
    code, errors = said("bundle", "done")
    assert (code, errors) == (2, f"error: {place}/done/more: {message}\n")
    assert not (place / "done.bundle.zip").exists()


def test_a_damaged_table_is_not_bundled(place: Path) -> None:
    (place / "x.toml").write_text(SHORT)
    assert said("run", "x.toml", "--out", "done")[0] == 0
    table = place / "done" / "ports.parquet"
    content = bytearray(table.read_bytes())
    content[len(content) // 2] ^= 1
    table.write_bytes(content)
    code, errors = said("bundle", "done")
    assert code == 2 and "ports.parquet: damaged or edited after the run" in errors
    assert not (place / "done.bundle.zip").exists()


def test_a_bundle_in_its_own_directory_does_not_hold_itself(place: Path) -> None:
    (place / "x.toml").write_text(SHORT)
    assert said("run", "x.toml", "--out", "done")[0] == 0
    for name in ("one.zip", "one.zip", "two.zip"):
        assert said("bundle", "done", "--out", f"done/{name}")[0] == 0
    with zipfile.ZipFile(place / "done" / "two.zip") as archive:
        assert not [name for name in archive.namelist() if name.endswith(".zip")]


def test_a_point_that_a_sweep_lost_is_named(place: Path) -> None:
    (place / "x.toml").write_text(f"{SWEEP}seed = [1, 2]\n")
    assert said("sweep", "x.toml", "--out", "s", "--jobs", "1")[0] == 0
    lost = next((place / "s" / "points").iterdir())
    shutil.rmtree(lost)
    for command in ("report", "bundle"):
        expected = f"error: s/points/{lost.name}: this point of the sweep is missing; sweep again\n"
        assert said(command, "s") == (2, expected)


def test_a_crate_that_cannot_be_written_is_not_left_in_part(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: Path, _: str) -> None:
        file.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))

    monkeypatch.setattr(Path, "write_text", full)
    code, errors = said("cc", "new", "mine")
    assert code == 2 and "mine: cannot be written: No space left on device" in errors
    assert not (place / "mine").exists()


def test_only_errors_of_standard_output_name_it() -> None:
    def full() -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))  # of fork

    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        assert guarded(full) == 1
    assert errors.getvalue() == "error: Resource temporarily unavailable\n"


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ("[]", "its bundle.json names no point"),
        ("null", "its bundle.json is not one of a bundle"),
        ('"abc"', "its bundle.json is not one of a bundle"),
        ("[" * 100_000, "its bundle.json is not one of a bundle"),
    ],
)
def test_a_bundle_s_index_is_one(place: Path, points: str, message: str) -> None:
    with zipfile.ZipFile("odd.zip", "w") as archive:
        archive.writestr("bundle.json", f'{{"version": "1", "points": {points}}}')
    code, errors = said("rerun", "odd.zip")
    assert code == 2 and f"odd.zip: {message}" in errors


def test_a_kernel_s_build_names_a_cache_that_cannot_be_written(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "file").touch()
    monkeypatch.setenv("FIRSTLIGHT_CACHE", f"{place}/file/cache")
    monkeypatch.setattr("firstlight.linux.tools.require", lambda: None)
    code, errors = said("kernel", "build")
    assert code == 1 and "file/cache" in errors and "set FIRSTLIGHT_CACHE to another directory" in errors


def test_a_report_replaces_reports_alone(place: Path) -> None:
    (place / "x.toml").write_text(SHORT)
    assert said("run", "x.toml", "--out", "done")[0] == 0
    assert said("report", "done")[0] == 0
    assert said("report", "done")[0] == 0
    (place / "mine").write_text("precious")
    page = place / "done" / "report.html"
    page.unlink()
    page.symlink_to(place / "mine")
    code, errors = said("report", "done")
    assert code == 2 and "report.html: exists and is not a report; move it" in errors
    assert (place / "mine").read_text() == "precious"
