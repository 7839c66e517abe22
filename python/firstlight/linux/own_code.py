"""The user's own kernel code, as an experiment names it: modules, and patches."""

from dataclasses import dataclass
from pathlib import Path

from firstlight.core import Experiment
from firstlight.errors import KernelError


@dataclass(frozen=True)
class Code:
    """A module's directory, a built module, or a patch."""

    place: str
    """Place and name of its key, as messages begin with them."""
    name: str
    """Name of the module or patch in the experiment."""
    path: Path
    sources: tuple[str, ...] = ()
    """The files from which a module is built, by their paths in its directory."""

    def error(self, problem: str) -> KernelError:
        """An error that says where the experiment names the code."""
        return KernelError(f"{self.place}: {self.name}: {problem}")


def modules(experiment: Experiment) -> list[Code]:
    """The modules of an experiment, in the order in which they are loaded."""
    return [
        Code(place, name, Path(path), tuple(s)) for place, name, path, s in experiment.read.kernel_code[0]
    ]


def patches(experiment: Experiment) -> list[Path]:
    """The patches of an experiment, in the order in which they are applied."""
    return [Path(path) for _, _, path, _ in experiment.read.kernel_code[1]]
