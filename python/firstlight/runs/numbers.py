"""Numbers of results, where one may be unknown, and how they are stored."""


def minus(a: float | None, b: float | None) -> float | None:
    """``a - b`` where both are known."""
    return None if a is None or b is None else a - b


def rounded(value: float | None) -> float | None:
    """Six significant digits: more would only be noise in a text."""
    return None if value is None else float(f"{value:.6g}")
