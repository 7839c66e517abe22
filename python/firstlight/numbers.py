"""Arithmetic on numbers that may be unknown, and their rounding for files."""


def minus(a: float | None, b: float | None) -> float | None:
    """``a - b``; ``None`` where either is unknown."""
    return None if a is None or b is None else a - b


def rounded(value: float | None) -> float | None:
    """A number with six significant digits."""
    return None if value is None else float(f"{value:.6g}")
