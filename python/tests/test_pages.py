"""Reports in a real browser: figures one can zoom and read, search, colours, print, and nothing fetched."""

import base64
import hashlib
import json
import re
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import firstlight as fl
import matplotlib.pyplot as plt
import networks
import numpy as np
import pytest
from browser import Browser, needs_browser, started
from firstlight.claims import read, reproduce
from firstlight.figures.panels import panels
from firstlight.figures.style import INK, _steps, draw
from firstlight.folders import folder
from firstlight.pages import report
from firstlight.runs.compare import Comparison
from firstlight.runs.pool import Means
from firstlight.runs.result import Result

CLAIMS = ("etalon/fig02b", "etalon/fig08", "dx/fig06", "dx/fig09")
FIGURES = "document.querySelectorAll('figure:has(> script)')"
CHARTS = """
const [figure] = arguments;
return [...firstlightChart.charts].filter((c) => figure.contains(c.u.root))
  .map((c) => c.panel.curves.map((k) => k.color).filter(Boolean));
"""
POINT = """
const [label, at, place] = arguments;
const chart = [...firstlightChart.charts][place];
const curve = chart.panel.curves.find((c) => c.label === label);
const middle = chart.panel.x.names.find(([, text]) => text === at)?.[0] ?? Number(at);
const far = [...curve.x].map((x) => Math.abs(x - middle));
const i = far.indexOf(Math.min(...far));
chart.u.setCursor({left: chart.u.valToPos(curve.x[i], "x"), top: chart.u.valToPos(curve.y[i], "y")});
return new Promise((done) => setTimeout(() => done(chart.u.over.querySelector(".readout").innerText)));
"""
INKED = """
const canvas = arguments[0].querySelectorAll("canvas")[arguments[1]];
const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
const want = arguments[2];
let count = 0;
for (let i = 0; i < pixels.length; i += 4) {
  count += pixels[i + 3] > 200 && (!want || want.every((c, k) => Math.abs(pixels[i + k] - c) < 12));
}
return count;
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of some claims, Etalon's with runs of 60 ms."""
    root = tmp_path_factory.mktemp("pages")
    experiments = folder("experiments")
    for claim in read.select(read.find(experiments), CLAIMS):
        target = root / "experiments" / claim.name
        shutil.copytree(claim.folder, target)
        plan = target / "claim.toml"
        plan.write_text(
            plan.read_text().replace('duration = "4.032s"', 'duration = "60ms"\nwarmup = "14.4ms"')
        )
        shutil.copy(claim.folder.parent / "paper.toml", target.parent)
    found = read.find(root / "experiments")
    points = reproduce.plan(found, "quick")
    return report.write_reproduction(reproduce.run(found, "quick", points, root / "out", Means(2)))


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with started(tmp_path / "profile") as one:
        yield one


@pytest.fixture
def opened(browser: Browser, page: Path) -> Browser:
    """The report, every figure of it drawn."""
    assert drawn(browser, page) >= 6
    return browser


def drawn(browser: Browser, page: Path) -> int:
    """Opens a page and waits until each of its figures is drawn; how many there are."""
    browser.open(page.as_uri())
    count = browser.js(f"return {FIGURES}.length")
    for i in range(count):
        browser.js(f"{FIGURES}[{i}].scrollIntoView()")
        browser.until(f"{FIGURES}[{i}].querySelector('canvas') !== null")
    browser.js("return new Promise(requestAnimationFrame)")
    return int(count)


@needs_browser
def test_figures_are_drawn_without_errors_and_without_a_network(opened: Browser, page: Path) -> None:
    assert opened.said() == []
    assert {a for a in opened.asked() if not a.startswith("data:")} == {page.as_uri()}
    for figure in opened.js(f"return [...{FIGURES}]"):
        charts = opened.js(CHARTS, figure)
        assert charts
        for place, colors in enumerate(charts):
            inked = [
                opened.js(INKED, figure, place, [int(c[i : i + 2], 16) for i in (1, 3, 5)]) for c in colors
            ]
            assert max(inked) > 20, f"chart {place} has no curve of any of the colours {colors}"
        drawing = "return getComputedStyle(arguments[0].querySelector(':scope > svg')).display"
        assert opened.js(drawing, figure) == "none"


@needs_browser
def test_numbers_under_the_pointer_are_the_tables(opened: Browser) -> None:
    """Each point of each curve of Etalon's Fig. 8, of the simulated hosts, as the table below has it."""
    rows: list[list[str]] = opened.js(
        "return [...document.querySelectorAll(\"section[id='etalon/fig08-static-voq'] tbody tr\")]"
        ".map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    table = [row for row in rows if row[0].startswith("Etalon 8") and len(row) == 11]
    charts = opened.js(
        "return [...firstlightChart.charts].map((c) => [c.u.root.closest('figure').id, c.panel.y.label,"
        " c.panel.title])"
    )
    compared = 0
    for figure, point, metric, *numbers in table:
        size = re.fullmatch(r"(\d+) packets", point)
        name = "fig0" + figure.removeprefix("Etalon ")
        for place in [
            i
            for i, (drawn, label, title) in enumerate(charts)
            if drawn == name and metric.lower() in (label.lower(), f"{title} (us)")
        ]:
            for curve, shown in (("simulated, scale 20", numbers[3]), ("simulated, exact time", numbers[6])):
                if size and shown != "-":
                    text = opened.js(POINT, curve, size[1], place)
                    [read_off] = re.findall(rf"{curve}: ([\d.]+)", text)
                    half = 0.5 * 10 ** -len(shown.partition(".")[2])
                    assert float(read_off) == pytest.approx(float(shown), abs=1.01 * half)
                    compared += 1
    assert compared == 12 + 36  # utilization, and three latencies, at six sizes on two time scales


def of_a_run(folder: Path, text: str) -> Path:
    result = fl.run(text, out=folder / "run")
    return report.write_result(result)


def of_a_sweep(folder: Path, text: str) -> Path:
    axes = {"switch.queue": [16, 1000], "seed": [1, 2]}
    return report.write_sweep(fl.sweep(text, {}, axes, out=folder / "sweep", jobs=1))


def of_a_comparison(folder: Path, text: str) -> Path:
    """The second run stands for one on Linux hosts."""
    one, other = fl.run(text, out=folder / "one"), fl.run(text, {"seed": 2}, out=folder / "other")
    linux = Result({**other.manifest, "kernel": {"version": "7", "hz": 250}}, path=other.path)
    return report.write_comparison(Comparison("one", one, linux, folder))


@needs_browser
@pytest.mark.parametrize("write", [of_a_run, of_a_sweep, of_a_comparison])
def test_every_kind_of_report_is_drawn_and_shows_its_tables_numbers(
    browser: Browser, tmp_path: Path, write: Callable[[Path, str], Path]
) -> None:
    file = tmp_path / "incast.toml"
    file.write_text(f'duration = "1s"\n{networks.INCAST}\n[measure]\naccount = true\nthroughput = "20us"\n')
    page = write(tmp_path, str(file))
    figures = drawn(browser, page)
    assert figures >= 2
    assert browser.said() == []
    assert {a for a in browser.asked() if not a.startswith("data:")} == {page.as_uri()}
    for figure in browser.js(f"return [...{FIGURES}]"):
        for place, colors in enumerate(browser.js(CHARTS, figure)):
            inks = [[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in colors]
            assert max(browser.js(INKED, figure, place, ink) for ink in inks) > 20
    cells = browser.js("return [...document.querySelectorAll('td')].map((cell) => cell.textContent)")
    done = fl.load(next(path.parent for path in tmp_path.glob("*/**/manifest.json")))
    assert f"{done.summary['goodput_gbps']:.5g}" in cells and "nan" not in cells
    bars = browser.js(
        "return [...firstlightChart.charts].filter((c) => c.panel.curves[0].bar)"
        ".map((c) => [c.panel.y.names.length, ...c.panel.curves.map((k) => "
        "[...k.x].reduce((a, b) => a + b, 0) - [...(k.base ?? [])].reduce((a, b) => a + b, 0))])"
    )
    assert bars
    for count, *parts in bars:
        assert sum(parts) == pytest.approx(100 * count, abs=1e-3), "causes add up to all of the time"


@needs_browser
def test_a_curve_can_be_hidden(opened: Browser) -> None:
    figure = opened.js("return document.getElementById('fig02b')")
    blue = [0, 114, 178]
    assert opened.js(INKED, figure, 0, blue) > 100
    names = opened.js(
        "return [...arguments[0].querySelectorAll('.legend button')].map((b) => b.innerText)", figure
    )
    assert names[:2] == ["optimal (computed)", "packet only (computed)"]
    button = opened.js("return arguments[0].querySelectorAll('.legend button')[2]", figure)
    opened.js("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    opened.js("return new Promise((done) => setTimeout(done, 100))")
    assert opened.js(INKED, figure, 0, blue) == 0
    button.click()
    opened.js("return new Promise((done) => setTimeout(done, 100))")
    assert opened.js(INKED, figure, 0, blue) > 100


@needs_browser
def test_time_axes_zoom_together_and_by_keys(opened: Browser) -> None:
    spans = (
        "[...firstlightChart.charts].filter((c) => c.u.root.closest('#fig02b'))"
        ".map((c) => c.u.scales.x.max - c.u.scales.x.min)"
    )
    before = opened.js(f"return {spans}")
    assert len(before) == 2
    chart = opened.js("return document.querySelectorAll('#fig02b .uplot')[1]")
    chart.send_keys("+")
    after = opened.until(f"((s) => s[0] < {before[0]} * 0.6 && s)({spans})")
    assert after == pytest.approx([b / 2 for b in before])
    chart.send_keys("0")
    assert opened.until(f"((s) => s[0] > {before[0]} * 0.9 && s)({spans})") == pytest.approx(before)
    for _ in range(3):
        chart.send_keys("\ue014")  # the right arrow
    text = opened.until("document.querySelectorAll('#fig02b .readout')[1].innerText")
    assert text.startswith("Time (us): ")
    assert "simulated, exact time: " in text


@needs_browser
def test_search_keys_and_colours(opened: Browser) -> None:
    body = opened.js("return document.body")
    body.send_keys("/")
    search = opened.js("return document.activeElement")
    assert search.get_attribute("id") == "search"
    search.send_keys("ladder")
    shown = "[...document.querySelectorAll('section:not([hidden])')].map((s) => s.id)"
    assert opened.js(f"return {shown}") == ["dx/fig09-ladder"]
    assert opened.js("return document.getElementById('found').textContent") == "1 of 4 claims"
    assert opened.js("return document.querySelectorAll('tbody[data-group]:not([hidden])').length") == 1
    search.send_keys("\ue00c")  # Escape
    assert len(opened.js(f"return {shown}")) == 4
    color = "return getComputedStyle(document.body).backgroundColor"
    assert opened.js(color) == "rgb(255, 255, 255)"
    opened.set("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert opened.js(color) == "rgb(20, 24, 27)"
    body.send_keys("t")
    assert opened.js(color) == "rgb(255, 255, 255)"


@needs_browser
def test_print_and_pages_without_javascript_have_the_drawings(opened: Browser, page: Path) -> None:
    drawn = "return [...document.querySelectorAll('figure > svg')].map((s) => getComputedStyle(s).display)"
    opened.set("Emulation.setEmulatedMedia", media="print")
    assert set(opened.js(drawn)) == {"block"}
    assert opened.js("return getComputedStyle(document.querySelector('.chart')).display") == "none"
    opened.set("Emulation.setEmulatedMedia", media="")
    opened.set("Emulation.setScriptExecutionDisabled", value=True)
    opened.open(page.as_uri())
    assert set(opened.js(drawn)) == {"block"}
    assert opened.js("return document.querySelector('canvas')") is None
    assert "Without JavaScript" in opened.js("return document.body.innerText")


def test_vendored_files_are_as_published() -> None:
    written = dict(
        re.findall(r"^\| `(\S+)` \| `(\w{64})` \|$", (report.ASSETS / "README.md").read_text(), re.M)
    )
    assert written.keys() == {"uPlot.iife.min.js", "uPlot.min.css"}
    for name, digest in written.items():
        assert hashlib.sha256((report.ASSETS / name).read_bytes()).hexdigest() == digest
    assert "MIT License" in (report.ASSETS / "uPlot.LICENSE").read_text()


def data(canvas: Any) -> Any:
    text = panels(canvas, INK)
    return json.loads(text) if text else None


def numbers(figure: Any, place: list[int]) -> list[float]:
    planes = np.frombuffer(zlib.decompress(base64.b64decode(figure["numbers"])), dtype="u1").reshape(4, -1)
    every = np.frombuffer(planes.T.tobytes(), dtype="<f4")
    return [float(v) for v in every[place[0] : place[0] + place[1]]]


def test_curves_are_read_from_what_is_drawn() -> None:
    canvas, (left, right) = plt.subplots(1, 2, sharex=True, sharey=True)
    left.plot([3, 1, 2], [0.5, np.nan, 4], "s--", color="#ff0000", mfc="white", label="a line")
    left.step([1, 2], [10, 20], where="post", color=INK)
    left.axhline(7, label="a level")
    left.axvspan(1.0, 1.5, color="#56B4E9", alpha=0.25)
    left.errorbar([1, 2], [5, 6], yerr=[0.5, 1], label="with reach")
    right.bar([0, 1], [3, 4], 0.5, label="columns")
    right.set_xticks([0, 1], ["first", "second <b>"])
    figure = data(canvas)
    plt.close(canvas)
    one, other = figure["panels"]
    assert (one["row"], one["column"], other["column"], one["group"], other["group"]) == (0, 0, 1, 0, 0)
    curves = {c["label"]: c for c in one["curves"]}
    assert numbers(figure, curves["a line"]["x"]) == [3, 2]
    assert numbers(figure, curves["a line"]["y"]) == [0.5, 4]
    line = curves["a line"]
    assert (line["color"], line["marker"], line["filled"], line["dash"]) == (
        "#ff0000",
        "s",
        False,
        [3.7, 1.6],
    )
    assert (curves[""]["step"], curves[""]["color"]) == (True, "")
    assert (curves["a level"]["x"][1], numbers(figure, curves["a level"]["y"])) == (0, [7])
    assert numbers(figure, curves["with reach"]["low"]) == [4.5, 5]
    assert numbers(figure, curves["with reach"]["high"]) == [5.5, 7]
    assert [(s["axis"], s["from"], s["to"]) for s in one["spans"]] == [("x", 1.0, 1.5)]
    [columns] = other["curves"]
    assert (columns["bar"], columns["thick"], numbers(figure, columns["y"])) == ("y", 0.5, [3, 4])
    assert other["x"]["names"] == [[0, "first"], [1, "second <b>"]]
    assert "<b>" not in panels(canvas, INK)


def test_stacked_bars_begin_where_those_before_end() -> None:
    canvas, axes = plt.subplots()
    axes.barh([0, 1], [30, 20], label="one")
    axes.barh([0, 1], [70, 40], left=[30, 20], label="other")
    figure = data(canvas)
    plt.close(canvas)
    one, other = figure["panels"][0]["curves"]
    assert "base" not in one and numbers(figure, one["x"]) == [30, 20]
    assert (numbers(figure, other["base"]), numbers(figure, other["x"])) == ([30, 20], [100, 60])


def test_long_curves_are_thinned_and_keep_their_peaks() -> None:
    x = np.arange(100_001, dtype=float)
    y = np.sin(x / 5000)
    y[31_234], y[70_001] = 9.0, -9.0
    canvas, axes = plt.subplots()
    axes.plot(x, y)
    axes.plot(x[:4000], y[:4000])
    figure = data(canvas)
    plt.close(canvas)
    long, short = figure["panels"][0]["curves"]
    found = dict(zip(numbers(figure, long["x"]), numbers(figure, long["y"]), strict=True))
    assert 1000 < len(found) <= 4000
    assert (found[31_234.0], found[70_001.0], min(found), max(found)) == (9.0, -9.0, 0.0, 100_000.0)
    assert all(value == pytest.approx(y[int(at)], abs=1e-6) for at, value in found.items())
    assert short["x"][1] == 4000


def test_named_ticks_of_shared_axes_stand_in_every_panel() -> None:
    canvas, grid = plt.subplots(2, 2, sharex=True)
    for axes in grid.ravel():
        axes.bar([0, 1], [3, 4])
        axes.set_xticks([0, 1], ["one", "two"])
        axes.tick_params(axis="x", labelsize=8)
    canvas.canvas.draw()
    figure = data(canvas)
    plt.close(canvas)
    assert [panel["x"]["names"] for panel in figure["panels"]] == 4 * [[[0, "one"], [1, "two"]]]


@pytest.mark.parametrize(
    ("path", "short"),
    [
        ("M 10.04 20 \nL 11.26 18.5 \nL 11.3 30 \nz\n", "M10 20l1.3-1.5 0 11.5z"),
        ("M 1 2 \nL 1.5 2.5 \nL 1 3.7 \nL 3 3.7 \nM 7 -0.2 \nL 8 0 \n", "M1 2l.5.5-.5 1.2 2 0M7-.2l1 .2"),
        ("M 0 3 \nC 0.7 3 1.5 2.6 2 2 \nz\n", "M 0 3 C 0.7 3 1.5 2.6 2 2 z"),
    ],
)
def test_paths_in_pages_step_from_point_to_point(path: str, short: str) -> None:
    assert _steps(path) == short


def test_a_drawing_in_a_page_is_short_and_has_all_its_lines_and_looks() -> None:
    def paint(canvas: Any) -> None:
        axes = canvas.subplots()
        axes.plot([1, 2, 3], [2, 1, 2], "o-", color="#0072b2", label="a <line>")
        axes.set_xticks([1, 2, 3], ["one", "two", "three"])

    figure = draw("one", "A caption", (3, 2), paint)
    names = dict(re.findall(r"[.](s[0-9a-f]{8} [.][a-z]+)[{]([^}]*)[}]", figure.inline))
    [own] = {name.split()[0] for name in names}
    assert f'<svg class="{own}"' in figure.inline and "style=" not in figure.inline
    looks = {name.split(".")[1]: look for name, look in names.items()}
    used = re.findall(r' class="([a-z]+)"', figure.inline)
    assert set(used) == set(looks)
    lines = [looks[name] for name in used if "stroke:#0072b2" in looks[name]]
    assert sum("clip-path:url(#" in look and "fill:none" in look for look in lines) == 1
    marks = re.findall(r'<path d="M[-\d. ]*l(?:0 3[.]5|-3[.]5 0)" class="([a-z]+)"/>', figure.inline)
    assert len(marks) == figure.svg.count("<use") - 3 and {
        "stroke:currentColor" in looks[m] for m in marks
    } == {True}
    assert figure.inline.count("<use") == 3, "the curve's own marks"
    assert len(figure.inline) < 0.4 * len(figure.svg)


def test_a_heat_map_remains_a_drawing() -> None:
    canvas, axes = plt.subplots()
    axes.pcolormesh(np.eye(3))
    assert panels(canvas, INK) == ""
    plt.close(canvas)
