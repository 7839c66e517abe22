"""Figures: of claims, with the papers' numbers and ours in one plot, and of single results."""

import os

try:
    import matplotlib  # noqa: F401
except ValueError:
    # MPLBACKEND names a backend that matplotlib does not know; figures are files.
    os.environ["MPLBACKEND"] = "Agg"
