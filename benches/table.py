"""From figures to sentences: comparisons, targets met or missed, and the printed table."""

from typing import Any

AGREE_PERCENT = 5.0  # packet-hop counts further apart than this are not the same work
ENOUGH_NS = {"incast": 60.0, "tree": 110.0, "permutation": 160.0}  # twice the floor of the bare skeleton
ENOUGH_RATIO = 100.0
ENOUGH_MB = 100.0
ENOUGH_SECONDS = 3.0

Figures = dict[str, Any]

NAMES = {"ours": "firstlight", "ns3": "ns-3", "floor": "forwarding floor"}
COLUMNS = ("", "ns/hop", "range", "packet-hops", "us/data packet", "data packets", "user CPU s", "MB")


def comparisons(results: Figures) -> dict[str, Figures]:
    """For each workload: ratios to the peer and to the floor, and whether the work was the same."""
    return {name: compare(sides) for name, sides in results["workloads"].items()}


def compare(sides: Figures) -> Figures:
    """Ratios of one workload."""
    found: Figures = {}
    ours = sides["ours"]
    if "floor" in sides:
        found["times_floor"] = per_hop(ours) / per_hop(sides["floor"])
    if "ns3" in sides:
        peer = sides["ns3"]
        apart = 100.0 * (ours["packet_hops"] / peer["packet_hops"] - 1.0)
        found["peer_over_ours_per_hop"] = per_hop(peer) / per_hop(ours)
        found["peer_over_ours_per_data_packet"] = per_packet(peer) / per_packet(ours)
        found["hops_differ_percent"] = apart
        found["comparable"] = abs(apart) <= AGREE_PERCENT
    return found


def per_hop(side: Figures) -> float:
    """Median user ns per packet-hop."""
    value: float = side["user_ns_per_packet_hop"]["median"]
    return value


def per_packet(side: Figures) -> float:
    """Median user us per delivered data packet."""
    value: float = side["user_us_per_delivered_packet"]["median"]
    return value


def targets(results: Figures) -> list[Figures]:
    """The goal, the measured value, and whether it meets the goal (None: not measured)."""
    work = results["workloads"]
    against = comparisons(results)
    pair, long = (work[name]["ours"] for name in ("etalon-pair", "etalon-14.4s"))
    hops = [
        below(f"{name}, user CPU ns per packet-hop", per_hop(work[name]["ours"]), aim)
        for name, aim in ENOUGH_NS.items()
    ]
    return [
        *hops,
        above("incast, times cheaper per packet-hop than ns-3", against["incast"]),
        above("etalon-pair, times cheaper per packet-hop than ns-3", against["etalon-pair"]),
        below("etalon-pair, memory MB", pair["max_rss_mb"], ENOUGH_MB),
        below("14.4 s of Etalon, user CPU s", long["user_cpu_s"]["median"], ENOUGH_SECONDS),
    ]


def below(what: str, measured: float, limit: float) -> Figures:
    """A target that the figure stays under `limit`."""
    return {"target": what, "aim": f"< {limit:g}", "measured": measured, "met": measured < limit}


def above(what: str, comparison: Figures) -> Figures:
    """A target that the peer costs at least `ENOUGH_RATIO` times as much."""
    measured = comparison.get("peer_over_ours_per_hop")
    met = None if measured is None else measured >= ENOUGH_RATIO
    return {"target": what, "aim": f">= {ENOUGH_RATIO:g}", "measured": measured, "met": met}


def render(results: Figures) -> str:
    """Everything as text."""
    machine = results["machine"]
    lines = [
        f"{machine['cpu']}, {machine['kernel']}, one core, median of {results['repeats']}"
        f" (load before: {machine['load_1min']}); ns-3 {machine['ns3'] or 'missing'}",
        "",
    ]
    for name, sides in results["workloads"].items():
        if name.startswith("permutation-"):
            continue
        rows = [row(side, figures) for side, figures in sides.items()]
        if results["peer_missing"] and "floor" in sides:
            rows.append((NAMES["ns3"], "missing", *["-"] * (len(COLUMNS) - 2)))
        lines += [name, *grid([COLUMNS, *rows])]
        lines += [f"  {sentence}" for sentence in sentences(results["comparisons"][name])]
        lines.append("")
    lines += [*growth(results["workloads"]), ""]
    if results["peer_missing"]:
        lines += [f"ns-3 is missing: {results['peer_missing']}", ""]
    lines += [target_line(target) for target in results["targets"]]
    return "\n".join(lines)


def growth(work: Figures) -> list[str]:
    """How the cost of a hop grows with the fat tree, hosts by their number."""
    trees = {4: "permutation-4", 8: "permutation-8", 16: "permutation", 24: "permutation-24"}
    head = ("hosts", "ns/hop", "floor", "packet-hops", "MB")
    rows = [
        (
            f"{k**3 // 4:,}",
            f"{per_hop(work[name]['ours']):.1f}",
            f"{per_hop(work[name]['floor']):.1f}",
            f"{work[name]['ours']['packet_hops']:,}",
            f"{work[name]['ours']['max_rss_mb']:.0f}",
        )
        for k, name in trees.items()
    ]
    return ["permutations on fat trees", *grid([head, *rows])]


def row(side: str, figures: Figures) -> tuple[str, ...]:
    """One side's line of the table."""
    hop = figures["user_ns_per_packet_hop"]
    packet = figures.get("user_us_per_delivered_packet")
    memory = figures.get("max_rss_mb")
    return (
        NAMES[side],
        f"{hop['median']:,.1f}",
        f"({hop['min']:,.1f} - {hop['max']:,.1f})",
        f"{figures['packet_hops']:,}",
        f"{packet['median']:.3f}" if packet else "-",
        f"{figures['delivered_data_packets']:,}" if packet else "-",
        f"{figures['user_cpu_s']['median']:.3f}",
        f"{memory:.0f}" if memory else "-",
    )


def grid(rows: list[tuple[str, ...]]) -> list[str]:
    """Rows with aligned columns: the first to the left, the others to the right."""
    widths = [max(len(line[i]) for line in rows) for i in range(len(rows[0]))]
    aligned = []
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        aligned.append("  ".join(["", first.ljust(widths[0]), *cells]))
    return aligned


def sentences(found: Figures) -> list[str]:
    """The summary of a workload's figures."""
    said = []
    if "comparable" in found:
        word = "comparable" if found["comparable"] else "not comparable"
        said.append(f"{word}: packet-hop counts differ by {found['hops_differ_percent']:+.1f} %")
        said.append(
            f"ns-3 takes {found['peer_over_ours_per_hop']:.0f} times as much per packet-hop,"
            f" {found['peer_over_ours_per_data_packet']:.0f} times as much per delivered data packet"
        )
    if "times_floor" in found:
        said.append(f"{found['times_floor']:.2f} times our own forwarding floor (same topology, no TCP)")
    return said


def target_line(target: Figures) -> str:
    """One target, met or missed."""
    verdict = {True: "met", False: "MISSED", None: "not measured"}[target["met"]]
    measured = "" if target["measured"] is None else f": {target['measured']:.3g}"
    return f"{verdict:>12}  {target['target']} {target['aim']}{measured}"
