"""Quantities of a manifest's ``spec`` as numbers."""

from firstlight import _core


def bits_per_second(rate: str) -> float:
    """``10Gbps`` as 1e10."""
    return float(_core.bps_of(rate))


def in_bytes(size: str) -> float:
    """``9kB`` as 9000."""
    return float(_core.bytes_of(size))


def in_us(time: str) -> float:
    """``10ms`` as 10000 us."""
    return _core.ps_of(time) / 1e6
