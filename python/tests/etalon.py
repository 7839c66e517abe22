"""Etalon's fabric with three racks, on which several tests build their experiments."""

FABRIC = """
[fabric]
kind = "hybrid"
racks = 3
hosts_per_rack = {per_rack}

[hosts]
rate = "40Gbps"
receive_rate = "{receive_rate}"

[packet]
rate = "10Gbps"
delay = "5us"

[circuit]
rate = "80Gbps"
delay = "30us"

[voq]
small = {voq}
"""

WEEK = """
[schedule]
kind = "etalon"
stands_for = 9
day = "180us"
night = "20us"
"""
"""The paper's week: each pair of racks has one day of nine."""

LOOP = """
[schedule]
kind = "solstice"
week = "2ms"
night = "20us"
least_day = "100us"

[control]
demand = "adu"
"""
"""Weeks computed from what applications have written."""


def fabric(per_rack: int = 4, *, receive_rate: str = "40Gbps", voq: int = 16) -> str:
    """The fabric without its schedule."""
    return FABRIC.format(per_rack=per_rack, receive_rate=receive_rate, voq=voq)
