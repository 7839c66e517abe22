"""Figures: of claims, with the papers' numbers and ours in one plot, and of single results."""

import os

# Figures are files, and a backend that matplotlib does not know is an error. Notebooks keep theirs, a module.
if not os.environ.get("MPLBACKEND", "module://").startswith("module://"):
    os.environ["MPLBACKEND"] = "Agg"
