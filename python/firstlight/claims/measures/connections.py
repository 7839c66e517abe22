"""Metrics of connections, from table ``flows``.

Of a workload NAME:

- ``established_pct: NAME``: how many of its connections were established before the run's end.
- ``first_try_pct: NAME``: how many were before the first SYN could be repeated.
- ``establish_p50_us: NAME``: the time that this took, median of those that were established.

Of all flows: ``retransmit_pct``, data packets sent again of those sent. Of flows that send until the run's
end: ``flow_gbps_p50``, ``flow_gbps_min`` and ``flow_gbps_max``, a flow's goodput from its start to the run's
end, and ``jain_of_flows``, Jain's index of these. Where all flows have one receiver that sends nothing but
ACKs: ``acks_per_ms``, ``packets_per_ack``, and ``interrupts_per_ms``, the packets that it takes and sends:
each is an interrupt where an interface does not wait for more. There also ``load_gbps``, full packets that
come to its port, dropped ones included, and ``least_load_gbps``, what would come by the formula of Judd,
NSDI'15, section 8.2, if each sender had its least window: ``tcp.min_window`` full packets for each flow and
round trip, the mean of the senders' smoothed ones. Where Linux hosts have processors also
``interrupt_cpu_pct``, the time that the receiver's card takes of a processor, as table ``processors`` has it.
"""

from math import isfinite

from firstlight.claims.measures.units import in_bytes
from firstlight.numbers import quantiles
from firstlight.runs.result import Result

FIRST_TRY_US = 500_000.0
"""Before this a SYN is not sent again: the timeout is ``tcp.rto_initial``, 1 s if nothing is written."""

KERNEL_FLOOR = 2
"""Packets of the least window of Linux hosts where ``tcp.min_window`` is not written."""


def metrics(result: Result) -> dict[str, float]:
    """The metrics of table ``flows``; none where a run has no flows."""
    if "flows" not in result.tables:
        return {}
    flows = result.table("flows")
    found: dict[str, float] = {}
    for name, rows in flows.groupby("workload"):
        times = rows["established_us"].dropna()
        found[f"established_pct: {name}"] = 100.0 * len(times) / len(rows)
        found[f"first_try_pct: {name}"] = 100.0 * float((times < FIRST_TRY_US).sum()) / len(rows)
        if len(times):
            found[f"establish_p50_us: {name}"] = float(quantiles(times, [0.5])[0])
    sent = float(flows["packets_sent"].sum())
    found["retransmit_pct"] = 100.0 * float(flows["retransmits"].sum()) / sent if sent else float("nan")
    found |= _at_receiver(result) | _shares(result)
    return {name: value for name, value in found.items() if isfinite(value)}


def _at_receiver(result: Result) -> dict[str, float]:
    """The packets that the receiver of all flows sent, and those that came to its port, over the whole
    run."""
    flows, ports = result.table("flows"), result.table("ports")
    receivers = set(flows["dst"])
    nics = ports[ports["name"].isin([f"host{receiver}.nic" for receiver in receivers])]
    if len(nics) != 1 or receivers & set(flows["src"]):
        return {}
    acks = float(nics["offered"].iloc[0])
    port = ports[ports["name"] == nics["name"].iloc[0].replace(".nic", ".port")]
    spec = result.manifest["spec"]
    packet_bits = 8 * in_bytes(spec["hosts"]["mtu"])
    least_bits = len(flows) * spec["tcp"].get("min_window", KERNEL_FLOOR) * packet_bits
    packets = float(flows["packets_sent"].sum())
    elapsed_ms = float(result.manifest["elapsed_us"]) / 1e3
    busy_us = float("nan")
    if "processors" in result.tables:
        processors = result.table("processors")
        busy_us = float(processors.loc[processors["host"].isin(receivers), "card_us"].iloc[0])
    return {
        "interrupt_cpu_pct": busy_us / elapsed_ms / 10,
        "acks_per_ms": acks / elapsed_ms,
        "packets_per_ack": packets / acks if acks else float("nan"),
        "interrupts_per_ms": acks / elapsed_ms + float(port["delivered"].sum()) / elapsed_ms,
        "load_gbps": float(port["offered"].sum()) * packet_bits / elapsed_ms / 1e6,
        "least_load_gbps": least_bits / float(flows["srtt_us"].mean()) / 1e3,
    }


def _shares(result: Result) -> dict[str, float]:
    """How flows that send until the run's end share the network."""
    flows = result.table("flows")
    endless = flows[(flows["size_bytes"] < 0) & flows["start_us"].notna()]
    if endless.empty:
        return {}
    lasted_us = float(result.manifest["elapsed_us"]) - endless["start_us"]
    x = (endless["bytes_received"] * 8e-3 / lasted_us).to_numpy(dtype=float)
    squares = float((x**2).sum())
    return {
        "flow_gbps_p50": float(quantiles(x, [0.5])[0]),
        "flow_gbps_min": float(x.min()),
        "flow_gbps_max": float(x.max()),
        "jain_of_flows": float(x.sum()) ** 2 / (len(x) * squares) if squares else float("nan"),
    }
