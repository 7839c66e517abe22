"""Quantiles, differences of numbers that may be unknown, and the rounding of numbers for files."""

import re
from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def quantiles(values: "npt.ArrayLike", parts: Sequence[float]) -> "npt.NDArray[np.float64]":
    """The smallest of ``values`` that each of ``parts`` (0 to 1) of them does not exceed: order statistics
    (nearest rank), as the core computes them for the tables of a result."""
    import numpy as np

    found: npt.NDArray[np.float64] = np.quantile(
        np.asarray(values, dtype=np.float64), parts, method="inverted_cdf"
    )
    return found


STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Student's t for a two-sided 95 % interval, with 1 to 10 degrees of freedom."""


def student(count: int) -> float:
    """Student's t for the two-sided 95 % interval of the mean of ``count`` values, two or more."""
    return STUDENT[count - 2] if count - 2 < len(STUDENT) else 1.96


def half_interval(values: "npt.NDArray[np.float64]") -> float:
    """Half of the 95 % interval of a mean (Student's t); nan for fewer than two values."""
    count = len(values)
    return float("nan") if count < 2 else student(count) * float(values.std(ddof=1)) / sqrt(count)


def minus(a: float | None, b: float | None) -> float | None:
    """``a - b``; ``None`` where either is unknown."""
    return None if a is None or b is None else a - b


def number(value: float | None) -> str:
    """Three to four digits; a dash where there is no number."""
    if value is None:
        return "-"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def rounded(value: float | None) -> float | None:
    """A number with six significant digits."""
    return None if value is None else float(f"{value:.6g}")


def whole(text: str) -> int | None:
    """The number that up to 18 digits write; ``None`` for any other text. Python cannot read 5,000."""
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else None
