"""Queueing delays as DX's testbed read them from its switch: samples of the first watched queue, in time."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from firstlight.claims.measures.units import bits_per_second
from firstlight.numbers import quantiles
from firstlight.runs.result import Result

Array = npt.NDArray[np.float64]


def sampled_delays_us(result: Result) -> Array:
    """The samples of the first watched queue, converted from bytes into time on its link (DX, Fig. 10:
    "measured in bytes and converted into time"). The link is assumed to be as fast as a host's."""
    samples = result.table("queue_samples")
    first = samples[samples["name"] == samples["name"].iloc[0]]
    rate = bits_per_second(result.manifest["spec"]["hosts"]["rate"])
    delays: Array = first["bytes"].to_numpy(dtype=float) * 8e6 / rate
    return delays


def sampled_delay_mean_us(result: Result) -> float:
    """Mean of the sampled queueing delays."""
    return float(sampled_delays_us(result).mean())


def sampled_delay_p99_us(result: Result) -> float:
    """The sampled queueing delay that 99 % do not exceed."""
    return float(quantiles(sampled_delays_us(result), [0.99])[0])


MEASURES: dict[str, Callable[[Result], float]] = {
    f.__name__: f for f in (sampled_delay_mean_us, sampled_delay_p99_us)
}
