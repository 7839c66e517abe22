"""The manual as a site (https://www.sphinx-doc.org): `make site` builds it; a warning is an error."""

import os
import re
from pathlib import Path

from firstlight import core
from sphinx.application import Sphinx

project = html_title = "Firstlight"
release = core.version()
extensions = ["myst_nb"]
root_doc = "docs/index"
include_patterns = [
    *("README.md", "CHANGELOG.md", "docs/**", "experiments/**.md"),
    *("hadoop/README.md", "benches/README.md", "linux/variants/README.md"),
]
exclude_patterns = ["docs/site"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # test_documents.py runs the notebooks
html_theme = "furo"
html_show_copyright = False
html_show_sphinx = False


def setup(app: Sphinx) -> None:
    """Let links to folders, which a code host shows, lead to their README here."""
    app.connect("source-read", _link_readmes)


def _link_readmes(app: Sphinx, page: str, source: list[str]) -> None:
    folder = Path(app.srcdir, page).parent

    def linked(match: re.Match[str]) -> str:
        text, target = match.groups()
        if not (folder / target).is_dir():
            return match[0]
        readme = folder / target / "README.md"
        return f"[{text}]({os.path.relpath(readme, folder)})" if readme.is_file() else text

    source[0] = re.sub(r"\[([^\]\[]+)\]\(([^)#\s:]+)\)", linked, source[0])
