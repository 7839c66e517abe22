"""The documents are true: README's lines print what it shows, and links lead to files."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("experiments/**/*.md")),
]


def test_readme_s_lines_print_what_it_shows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = re.search(r"```python\n(.*?)```\n+```text\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found is not None
    monkeypatch.chdir(ROOT)
    exec(found[1], {})
    assert capsys.readouterr().out == found[2], (
        "a result has changed: `make docs`, and CHANGELOG's 'Results changed'"
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_files_that_exist(page: Path) -> None:
    for target in re.findall(r"\]\((?!https://)([^)#\s]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page}: {target}"
