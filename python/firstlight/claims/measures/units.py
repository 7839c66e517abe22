"""Quantities of a manifest's ``spec`` as numbers."""

from firstlight import _core

RATES = {"Tbps": 1e12, "Gbps": 1e9, "Mbps": 1e6, "kbps": 1e3, "bps": 1.0}
TIMES = {"ms": 1e3, "us": 1.0, "ns": 1e-3, "ps": 1e-6, "s": 1e6}


def bits_per_second(rate: str) -> float:
    """``10Gbps`` as 1e10."""
    return _number(rate, RATES)


def in_bytes(size: str) -> float:
    """``9kB`` as 9000."""
    return float(_core.bytes_of(size))


def in_us(time: str) -> float:
    """``10ms`` as 10000 us."""
    return _number(time, TIMES)


def _number(text: str, units: dict[str, float]) -> float:
    unit = next(u for u in units if text.endswith(u))
    return float(text.removesuffix(unit)) * units[unit]
