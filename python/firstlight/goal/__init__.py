"""Schedules of message-passing applications in GOAL's text form, for workloads of kind ``goal``."""

from firstlight.goal.applications import NAMES, generate

__all__ = ["NAMES", "generate"]
