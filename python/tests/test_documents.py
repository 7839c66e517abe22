"""The documents: their examples and notebooks print what they show, and the site has no broken link."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import firstlight as fl
import nbformat
import pytest
from firstlight.core import Spec
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
NOT_RUN = 20
"""The most blocks that may be marked as not run."""


def loaded() -> ModuleType:
    """The module ``docs/examples.py``."""
    spec = importlib.util.spec_from_file_location("examples", ROOT / "docs" / "examples.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["examples"] = module  # its dataclasses look there
    spec.loader.exec_module(module)
    return module


examples: Any = loaded()
untyped: Any = nbformat
TEXTS = {page: page.read_text() for page in examples.pages()}
PAGES = [page for page, text in TEXTS.items() if any(e.runs for e in examples.examples(text))]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
LINUX = re.compile(r'--hosts linux|^\$ firstlight compare|^kind = "linux"', re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_print_what_the_page_shows(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    if any(LINUX.search(e.code) for e in examples.examples(TEXTS[page]) if not e.not_run):
        request.getfixturevalue("kernel")
    assert examples.refreshed(TEXTS[page], tmp_path) == TEXTS[page], (
        "a page shows other output: `make docs`, and CHANGELOG's 'Results changed' if a result has changed"
    )


def test_few_examples_are_not_run_and_each_says_why() -> None:
    skipped = [e for text in TEXTS.values() for e in examples.examples(text) if e.not_run is not None]
    assert len(skipped) <= NOT_RUN
    assert all(len(e.not_run.split()) >= 3 for e in skipped)


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_stand_in_blocks_that_are_run(page: Path) -> None:
    commands = r"^ {4,}(?:\$ |[a-z]+ -|firstlight |make |pip |cp |cat )\S.*"
    assert not re.findall(commands, TEXTS[page], re.MULTILINE), (
        "write commands in a ```console block, after `$ `"
    )
    for one in examples.examples(TEXTS[page]):
        assert one.kind == "console" or not re.search(r"^\w*[$#] ", one.code, re.MULTILINE), one.code
    for kind in re.findall(r"^```(\w*)$", TEXTS[page], re.MULTILINE):
        assert kind not in ("sh", "bash", "shell"), "write commands in a ```console block, after `$ `"


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_parts_of_experiments_have_keys_that_there_are(page: Path, tmp_path: Path) -> None:
    """A block of TOML that is no file of its own lacks a network and flows, and has no other fault."""
    file = tmp_path / "part.toml"
    for one in examples.examples(TEXTS[page]):
        if one.kind == "toml" and not one.notes:
            file.write_text(one.code)
            with pytest.raises(fl.SpecError) as error:
                Spec.read(file).check()
            lines = str(error.value).splitlines()
            wrong = [
                line
                for line in lines
                if not re.search("(duration|fabric): missing|: no flow, so nothing", line)
            ]
            assert wrong == [], one.code


def text_of(outputs: list[Any]) -> str:
    """The texts of a cell's outputs, without pictures."""
    return "".join(o.get("text") or o.get("data", {}).get("text/plain", "") for o in outputs)


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
@pytest.mark.filterwarnings("ignore")  # of Jupyter's own
def test_notebooks_run_and_show_what_they_did(file: Path, tmp_path: Path) -> None:
    stored, fresh = (untyped.read(file, as_version=4) for _ in range(2))
    NotebookClient(fresh, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    for before, after in zip(stored.cells, fresh.cells, strict=True):
        if before.cell_type == "code":
            assert text_of(after.outputs) == text_of(before.outputs)


def test_there_are_three_notebooks() -> None:
    assert len(NOTEBOOKS) == 3


def built(source: Path, out: Path) -> "subprocess.CompletedProcess[str]":
    """The site of the pages below ``source``; a warning is an error."""
    words = ["-q", "-n", "-W", "--keep-going", "-b", "html", "-c", str(ROOT / "docs" / "site")]
    return subprocess.run(
        [sys.executable, "-m", "sphinx", *words, str(source), str(out)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    done = built(ROOT, tmp_path / "site")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "site" / "docs" / "index.html").read_text()
    fetched = re.findall(r'(?:src|rel="stylesheet"[^>]*href)="(https?:[^"]+)"', page)
    assert fetched == [], "the site is read offline"


def test_a_broken_link_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# X\n\n[gone](nowhere.md) and [here](#no-such-place)\n")
    done = built(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert "nowhere.md" in done.stderr and "no-such-place" in done.stderr


PAGE = """\
<!-- file: a.txt -->
```text
one
```
<!-- more of: a.txt -->
```text
two
```
```console
$ cat a.txt
one
three
$ echo quiet
```
```python
x = 4
print(x)
```
```text
5
```
<!-- not run: it would fail, always -->
```console
$ false
```
"""


def test_outputs_are_written_where_they_differ(tmp_path: Path) -> None:
    fresh = examples.refreshed(PAGE, tmp_path)
    assert fresh == PAGE.replace("three", "two").replace("\n5\n", "\n4\n")


def test_a_command_that_fails_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="exit code 1"):
        examples.refreshed("```console\n$ false\n```\n", tmp_path)


def test_dots_stand_for_any_lines(tmp_path: Path) -> None:
    page = "```console\n$ seq 5\n1\n...\n5\n```\n"
    assert examples.refreshed(page, tmp_path) == page
