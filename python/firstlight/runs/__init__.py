"""Runs of experiments: one, a sweep of many, the same on two kinds of hosts; and their results."""
