"""Schedules of a circuit switch: demand from files, what schedulers make of it, the command."""
