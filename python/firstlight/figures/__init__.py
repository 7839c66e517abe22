"""Figures in the papers' form, the papers' numbers and ours in one plot."""
