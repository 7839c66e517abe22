"""The page of :mod:`firstlight.live` as a widget of Jupyter and marimo (extra ``notebook``: anywidget)."""

from pathlib import Path
from typing import Any

import anywidget
import traitlets

from firstlight.core import Overrides
from firstlight.errors import FirstlightError
from firstlight.live.bench import Bench
from firstlight.pages.report import ASSETS

OWN = Path(__file__).parent / "assets"
SCRIPTS = (ASSETS / "uPlot.iife.min.js", ASSETS / "chart.js", OWN / "live.js", OWN / "widget.js")
STYLES = (ASSETS / "uPlot.min.css", ASSETS / "chart.css", OWN / "live.css", OWN / "widget.css")


def _joined(files: tuple[Path, ...]) -> str:
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


class Live(anywidget.AnyWidget):
    """An experiment with sliders for its numbers: each change runs it again and shows what happened.

    >>> import firstlight as fl
    >>> fl.Live("experiment.toml")  # doctest: +SKIP

    ``path`` is a file, or the name of a scene that comes with Firstlight: ``dynamic-voqs``, ``incast`` or
    ``pause-tree``. ``overrides`` replaces keys of the file. Raises :class:`SpecError` for a wrong experiment.
    """

    _esm = _joined(SCRIPTS)
    _css = _joined(STYLES)
    knobs = traitlets.List().tag(sync=True)  # type: ignore[var-annotated]

    def __init__(self, path: str | Path, overrides: Overrides | None = None) -> None:
        self._bench = Bench.read(path, overrides)
        super().__init__(knobs=[knob.as_dict() for knob in self._bench.knobs()])
        self.on_msg(self._answer)

    def _answer(self, _: object, message: dict[str, Any], __: object) -> None:
        """Run with the settings of a message and send back the frame, or why there is none."""
        try:
            frame = self._bench.run(message["settings"])
        except FirstlightError as e:
            frame = {"error": str(e)}
        self.send({"id": message["id"], "frame": frame})
