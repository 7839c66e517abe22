"""Figures: of claims, with the papers' numbers and ours in one plot, and of single results."""
