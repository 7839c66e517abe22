"""Schedules of a circuit switch: demand between racks, and the week that a scheduler computes for it."""
