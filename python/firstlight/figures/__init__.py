"""Figures: of claims, with the papers' numbers and ours in one plot, and of single results."""

import os

os.environ["MPLBACKEND"] = "Agg"  # figures are files; a backend that matplotlib does not know is an error
