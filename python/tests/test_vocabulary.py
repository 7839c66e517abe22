"""A class name has one meaning in the whole package, and every docstring can be read alone."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "firstlight"
WITHOUT_NOUN = re.compile(r"(and|or|in|by|where|which|As above|The same|It|Its|Those|They|Them)\b")
"""First words of a docstring that only goes on with another, or whose noun is in another."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    """The package's modules, by path."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield str(path.relative_to(PACKAGE)), ast.parse(path.read_text(encoding="utf-8"))


def docstrings(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Strings that stand alone as a statement, with their lines."""
    for node in ast.walk(module):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text


def problem(docstring: str) -> str:
    """What is wrong with a docstring that cannot be read alone; empty if nothing is."""
    if docstring.rstrip().endswith(","):
        return "ends in a comma"
    found = WITHOUT_NOUN.match(docstring.lstrip())
    return f"begins with '{found[0]}'" if found else ""


def test_class_names_have_one_meaning() -> None:
    places: dict[str, str] = {}
    for path, module in modules():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                before = places.setdefault(node.name, path)
                assert before == path, f"class {node.name} is defined in {before} and in {path}: rename one"
    assert places["GridSlice"] == "runs/grid.py"


def test_docstrings_can_be_read_alone() -> None:
    for path, module in modules():
        for line, docstring in docstrings(module):
            assert not problem(docstring), f"{path}:{line}: {problem(docstring)}: name the thing"


def test_halves_of_docstrings_are_found() -> None:
    assert all(
        map(problem, ("For this window,", "in the tick that starts here.", "Its name.", "The same runs."))
    )
    assert not any(map(problem, ("The name of a run.", "Itself a file.", "Where a file is.")))
