"""A schedule in the making: exchanges of messages, one after another, each rank at its own pace.

The text form is GOAL's (Hoefler, Siebert and Lumsdaine, ICPP 2009), as LogGOPSim and ATLAHS read it.
"""

from collections.abc import Iterable

Message = tuple[int, int, int]
"""Source, destination, bytes."""


class Schedule:
    """What each rank does; an operation waits for all that its rank did in the exchange before."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self._lines: list[list[str]] = [[] for _ in range(ranks)]
        self._last: list[list[str]] = [[] for _ in range(ranks)]
        self._labels = [0] * ranks

    def exchange(self, messages: Iterable[Message]) -> None:
        """Messages at once: a rank goes on when it has sent its own and received all that are for it.

        Ranks that have none do not wait. Empty messages, and those to the sender itself, are left out.
        """
        begun: dict[int, list[str]] = {}
        for src, dst, size in messages:
            if src != dst and size > 0:
                begun.setdefault(src, []).append(f"send {size}b to {dst} tag 0")
                begun.setdefault(dst, []).append(f"recv {size}b from {src} tag 0")
        for rank, operations in begun.items():
            self._do(rank, operations)

    def compute(self, nanoseconds: int) -> None:
        """Every rank computes."""
        self.compute_on(range(self.ranks), nanoseconds)

    def compute_on(self, ranks: Iterable[int], nanoseconds: int) -> None:
        """Some ranks compute; for no time: nothing is written."""
        for rank in ranks if nanoseconds > 0 else ():
            self._do(rank, [f"calc {nanoseconds}"])

    def _do(self, rank: int, operations: list[str]) -> None:
        if len(self._last[rank]) > 1:
            # One point where the last exchange's operations meet, instead of an edge for each pair.
            self._add(rank, ["calc 0"])
        self._add(rank, operations)

    def _add(self, rank: int, operations: list[str]) -> None:
        lines, before = self._lines[rank], self._last[rank]
        labels = []
        for operation in operations:
            self._labels[rank] += 1
            label = f"l{self._labels[rank]}"
            lines.append(f"{label}: {operation}")
            lines.extend(f"{label} requires {earlier}" for earlier in before)
            labels.append(label)
        self._last[rank] = labels

    def text(self) -> str:
        """The schedule as a file has it."""
        blocks = [f"num_ranks {self.ranks}\n"]
        for rank, lines in enumerate(self._lines):
            blocks.append("\n".join([f"rank {rank} {{", *lines, "}\n"]))
        return "".join(blocks)
