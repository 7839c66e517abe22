"""Finds the folders of data: in a checkout they lie beside the package, in a wheel within it."""

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
SHARE = PACKAGE / "share"
"""A wheel's copy of these folders."""


def folder(name: str) -> Path:
    """The folder ``name`` (``experiments``, ``linux``): of ``FIRSTLIGHT_<NAME>``, else of the checkout, else
    of the installed package, else of the working directory."""
    if named := os.environ.get(f"FIRSTLIGHT_{name.upper()}"):
        return Path(named).absolute()
    checkout = PACKAGE.parents[1]
    places = [SHARE / name]
    if (checkout / "Cargo.toml").is_file():
        places.insert(0, checkout / name)
    return next((place for place in places if place.is_dir()), Path(name).absolute())
