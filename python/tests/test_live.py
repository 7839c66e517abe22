"""The page of ``firstlight live`` and the widget: runs, settings, what is refused, what a browser shows."""

import contextlib
import http.client
import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import firstlight as fl
import pytest
from browser import Browser, needs_browser, started
from conftest import argv, environment
from firstlight.errors import RunError, SpecError
from firstlight.live.bench import Bench, Stale, scenes
from firstlight.live.server import Server
from jupyter_client.manager import start_new_kernel

SCENES = ("dynamic-voqs", "incast", "pause-tree")


def bench(name: str) -> Bench:
    return Bench.read(scenes()[name])


def metric(frame: dict[str, Any], name: str) -> float:
    return float(next(value for metric, _, value in frame["summary"] if metric == name))


def test_every_scene_runs_in_well_under_a_second() -> None:
    assert tuple(scenes()) == SCENES
    for name in SCENES:
        frame = bench(name).run({})
        assert "Shortened" not in frame["note"]
        assert frame["figure"]["panels"][0]["curves"]


def test_scenes_show_what_they_say() -> None:
    """A VOQ that grows in advance fills the circuit; DCTCP ends an incast's losses; pauses reach hosts."""
    voqs = bench("dynamic-voqs")
    used = "circuit_utilization_pct"
    assert metric(voqs.run({}), used) > metric(voqs.run({"voq.advance": "0us"}), used) + 5
    incast = bench("incast")
    cubic, dctcp = (incast.run({"tcp.cc": cc}) for cc in ("cubic", "dctcp"))
    assert metric(cubic, "dropped_packets") > 0 == metric(dctcp, "dropped_packets")
    assert metric(cubic, "fct_max_us") > 5 * metric(dctcp, "fct_max_us")
    paused = {name for _, name, begins in bench("pause-tree").run({})["pauses"] if begins}
    assert {"spine0->leaf0", "leaf1->spine0", "host4.nic"} <= paused
    assert any(name == "host7.nic" for name in paused), "the victim is paused too"


def test_windows_over_time_are_those_of_the_flows_with_the_most_bytes() -> None:
    frame = bench("dynamic-voqs").run({})
    (panel,) = [panel for panel in frame["figure"]["panels"] if panel["y"]["what"] == "Window (packets)"]
    assert 0 < len(panel["curves"]) <= 6 and panel["x"]["what"] == "Time (ms)"
    result = fl.run(scenes()["dynamic-voqs"], {"warmup": "0s", "measure.throughput": "100us"})
    windows = result.table("throughput")["cwnd_packets"]
    last = result.flows.set_index("id")["cwnd_packets"]
    ends = result.table("throughput").groupby("flow").last()["cwnd_packets"]
    assert windows.min() >= 1 and windows.nunique() > 5
    assert (ends == last[ends.index]).mean() > 0.5, (
        "a window at the end of the last interval is that at the end"
    )


def test_a_run_is_that_of_the_command_that_is_copied() -> None:
    one = bench("dynamic-voqs")
    settings = {"voq.advance": "600us", "voq.large": 64, "tcp.cc": "reno"}
    frame = one.run(settings)
    document = tomllib.loads(frame["toml"])
    assert (document["voq"]["advance"], document["voq"]["large"], document["tcp"]["cc"]) == (
        "600us",
        64,
        "reno",
    )
    assert frame["toml"].startswith("# Dynamic VOQs"), "comments stay"
    words = shlex.split(frame["command"])
    assert words[:2] == ["firstlight", "run"]
    assert words[3:] == ["--set", "voq.advance=600us", "--set", "voq.large=64", "--set", "tcp.cc=reno"]
    told = {key: value for key, _, value in (word.partition("=") for word in words[4::2])}
    assert fl.run(words[2], told).digest == frame["digest"]


def test_toml_has_settings_of_lists_and_of_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "e.toml"
    file.write_text(scenes()["incast"].read_text())
    one = Bench.read(file, {"tcp.initial_window": "4", "hosts.delay": "2us"})
    document = tomllib.loads(one.toml({"workload.0.senders": 12, "dctcp.g": 0.25}))
    assert document["workload"][0]["senders"] == 12
    assert document["tcp"]["initial_window"] == 4
    assert document["hosts"]["delay"] == "2us"
    assert document["dctcp"] == {"g": 0.25}
    assert {k.key: k.value for k in one.knobs()}["tcp.initial_window"] == 4


def test_a_long_experiment_is_shortened_and_says_so() -> None:
    one = Bench.read(scenes()["incast"], {"duration": "20s", "workload.0.rounds": 2000})
    frame = one.run({})
    assert "Shortened from 20 s to " in frame["note"]
    assert frame["end_us"] < 20e6
    one.budget_s = float("inf")  # a busy machine would shorten it further
    assert one.run({})["end_us"] == frame["end_us"], "the second run has the same length"


def test_ports_are_watched_anew_on_another_fabric() -> None:
    one = bench("incast")
    assert len(one.run({})["queues"]) == 24 + 6 + 6
    assert len(one.run({"fabric.spines": 3})["queues"]) == 24 + 9 + 9


def test_knobs_are_the_numbers_of_the_file() -> None:
    knobs = {knob.key: knob for knob in bench("dynamic-voqs").knobs()}
    assert (knobs["voq.advance"].value, knobs["voq.advance"].unit) == (1800, "us")
    assert (knobs["voq.large"].whole, knobs["voq.large"].low, knobs["voq.large"].high) == (True, 7, 400)
    assert "cubic" in knobs["tcp.cc"].choices
    assert "the file's value" not in knobs["tcp.cc"].help
    assert not {"name", "duration", "measure.pair", "schedule.kind", "fabric.kind"} & knobs.keys()


def test_a_newer_run_ends_an_older_one() -> None:
    one = Bench.read(scenes()["incast"], {"duration": "20s", "workload.0.rounds": 2000})
    one.budget_s = 30.0
    raised: list[BaseException] = []

    def older() -> None:
        try:
            one.run({})
        except Stale as e:
            raised.append(e)

    thread = threading.Thread(target=older)
    thread.start()
    time.sleep(0.5)
    one.budget_s = 0.2
    one.run({"tcp.cc": "dctcp"})
    thread.join(10)
    assert len(raised) == 1


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"voq.advnce": "1us"}, "voq.advance"),
        ({"voq.large": -3}, "voq.large"),
        ({"hosts.rate": "40 bananas"}, "hosts.rate"),
    ],
)
def test_wrong_settings_say_what_would_be_right(settings: dict[str, Any], wanted: str) -> None:
    with pytest.raises(SpecError, match=wanted):
        bench("dynamic-voqs").run(settings)


def test_linux_hosts_are_refused(small: Path) -> None:
    with pytest.raises(SpecError, match=r"simulated hosts only: add --set hosts\.kind=simulated"):
        Bench.read(small, {"hosts.kind": "linux"})


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """The page of dynamic VOQs."""
    import uvicorn

    one = Server(bench("dynamic-voqs"))
    config = uvicorn.Config(one.application(), log_level="warning", lifespan="off")
    running = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: running.run(sockets=[one.socket]), daemon=True)
    thread.start()
    yield one
    running.should_exit = True
    thread.join(10)


def asked(
    server: Server, method: str, path: str, body: str = "", **headers: str
) -> tuple[int, str, dict[str, str]]:
    link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    link.request(method, path, body or None, headers)
    answer = link.getresponse()
    text = answer.read().decode()
    link.close()
    return answer.status, text, {k.lower(): v for k, v in answer.getheaders()}


def test_only_this_machine_with_the_token_is_answered(server: Server) -> None:
    page = f"/{server.token}/"
    status, text, headers = asked(server, "GET", page)
    assert status == 200
    assert "https:" not in text and "src=" not in text.replace("src = ", "")
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'nonce-")
    assert headers["cache-control"] == "no-store"
    last = "y" if server.token.endswith("x") else "x"
    for path in ("/", "/wrong/", f"/{server.token[:-1]}{last}/", f"/{server.token}", "/favicon.ico"):
        assert asked(server, "GET", path)[0] == 403, path
    assert "wrong token" in asked(server, "GET", "/wrong/")[1]
    assert asked(server, "POST", "/wrong/run", "{}")[0] == 403
    assert asked(server, "GET", page, Host="evil.example")[0] == 403
    assert asked(server, "POST", f"{page}run", "{}", Origin="http://evil.example")[0] == 403
    status, text, _ = asked(server, "POST", f"{page}run", "{}", Origin=f"http://127.0.0.1:{server.port}")
    assert (status, json.loads(text)["name"]) == (200, "dynamic-voqs")
    assert len(server.token) >= 32


def test_wrong_requests_are_answered_with_the_reason(server: Server) -> None:
    status, text, _ = asked(server, "POST", f"/{server.token}/run", "nonsense")
    assert (status, "a JSON object" in text) == (400, True)
    status, text, _ = asked(server, "POST", f"/{server.token}/run", '{"voq.large": -1}')
    assert (status, "voq.large" in json.loads(text)["error"]) == (422, True)


def test_the_server_listens_on_loopback_alone(server: Server) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"


def test_a_taken_port_is_an_error(server: Server) -> None:
    with pytest.raises(RunError, match=rf"port {server.port} .*in use; name another one with --port"):
        Server(bench("incast"), server.port)


def test_the_command_prints_its_address_and_ends_on_ctrl_c(tmp_path: Path) -> None:
    started = subprocess.Popen(
        argv(["live", "incast"]), cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment()
    )
    try:
        assert started.stdout is not None
        address = started.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        port = int(address.split(":")[2].split("/")[0])
        with socket.create_connection(("127.0.0.1", port), timeout=10):
            pass
        started.send_signal(signal.SIGINT)
        assert started.wait(20) in (0, 130)
    finally:
        started.kill()
        started.stdout.close() if started.stdout else None


def test_the_command_refuses_what_is_no_experiment(tmp_path: Path) -> None:
    done = subprocess.run(
        argv(["live", "nothing"]),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    assert done.returncode == 2
    assert "nothing: no such file; scenes" in done.stderr
    assert "dynamic-voqs, incast, pause-tree" in done.stderr


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with started(tmp_path / "profile") as one:
        yield one


@pytest.fixture
def opened(browser: Browser, server: Server) -> Browser:
    browser.open(server.address)
    browser.until("document.querySelector('.fl-live')?.dataset.state === 'shown'")
    return browser


SLIDE = """
const range = document.querySelector(`[data-key="${arguments[0]}"] input[type=range]`);
range.value = arguments[1];
range.dispatchEvent(new Event("input"));
"""


@needs_browser
def test_a_slider_reruns_and_leaves_the_old_curve_as_a_ghost(opened: Browser, server: Server) -> None:
    labels = "[...document.querySelectorAll('.legend button')].map((b) => b.innerText)"
    assert "before" not in opened.js(f"return {labels}")
    opened.js(SLIDE, "voq.large", 40)
    opened.until("document.querySelector('.fl-live').dataset.runs === '2'")
    assert "before" in opened.js(f"return {labels}")
    value = opened.js("return document.querySelector('[data-key=\"voq.large\"] input').value")
    wanted = server.bench.run({"voq.large": int(value)})
    assert wanted["digest"] in opened.js("return document.body.innerText")
    cell = "return document.querySelector('[data-metric=circuit_utilization_pct] td.n').textContent"
    opened.js("document.querySelector('.fl-live details').open = true")
    assert float(opened.js(cell)) == pytest.approx(metric(wanted, "circuit_utilization_pct"), rel=1e-4)
    assert opened.said() == []
    assert all(a.startswith((server.address, "data:")) for a in opened.asked())


@needs_browser
def test_windows_are_curves_over_time(opened: Browser) -> None:
    charts = "[...document.querySelectorAll('.fl-live .uplot')].map((u) => u.getAttribute('aria-label'))"
    named = [label for label in opened.js(f"return {charts}") if "Window (packets) against Time" in label]
    assert len(named) == 1, "a chart of windows"
    buttons = "[...document.querySelectorAll('.legend button')].map((b) => b.innerText)"
    assert any(label.startswith("flow ") for label in opened.js(f"return {buttons}"))


@needs_browser
def test_circuits_are_drawn_day_by_day(opened: Browser) -> None:
    """The week's first day joins 0 to 2, 1 to 0, 2 to 1; before it is a night."""
    pairs = "[...document.querySelectorAll('.circuit')].map((c) => c.dataset.pair)"
    forward = opened.js(
        "return [...document.querySelectorAll('.row button')].find((b) => b.title.endsWith('on'))"
    )
    fabric = "document.querySelector('svg.fabric').textContent"
    packets = re.search(r"longest VOQ 0 to 1: (\d+) packets", opened.js(f"return {fabric}"))
    assert packets and int(packets[1]) > 30, "the page begins when a VOQ is longest"
    bars = opened.js(
        "return [...document.querySelectorAll('[data-voq]')]"
        ".map((b) => [b.dataset.voq, Number(b.getAttribute('height'))])"
    )
    assert {name for name, _ in bars} == {f"voq.{a}.{b}" for a in range(3) for b in range(3) if a != b}
    high = dict(bars)
    assert high["voq.0.1"] == max(high.values()) > 30 and high["voq.2.1"] == 0, "rack 0 sends to rack 1"
    opened.js(
        "const time = document.querySelector('input[aria-label=Time]');"
        "time.value = 0; time.dispatchEvent(new Event('input'))"
    )
    assert opened.js(f"return {pairs}") == []
    forward.click()
    assert opened.js(f"return {pairs}") == ["0-2", "1-0", "2-1"]
    forward.click()
    assert opened.js(f"return {pairs}") == []
    assert "night" in opened.js(f"return {fabric}")


@needs_browser
def test_two_pinned_runs_are_compared(opened: Browser, server: Server) -> None:
    click = "[...document.querySelectorAll('.row button')].find((b) => b.innerText === arguments[0]).click()"
    opened.js(click, "Pin A")
    opened.js(SLIDE, "voq.large", 40)
    opened.until("document.querySelector('.fl-live').dataset.runs === '2'")
    opened.js(click, "Pin B")
    heads = opened.js("return [...document.querySelectorAll('.fl-live th')].map((h) => h.innerText)")
    assert heads == ["metric", "now", "A", "B", "unit"]
    cells = "document.querySelectorAll('[data-metric=circuit_utilization_pct] td.n')"
    row = opened.js(f"return [...{cells}].map((c) => c.innerText)")
    assert row[0] == row[2] != row[1]
    assert float(row[1]) == pytest.approx(metric(server.bench.run({}), "circuit_utilization_pct"), rel=1e-4)


@needs_browser
def test_what_is_copied_has_the_settings(opened: Browser) -> None:
    opened.js(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: (t) => { window.copied = t; }}})"
    )
    opened.js(SLIDE, "voq.large", 100)
    opened.until("document.querySelector('.fl-live').dataset.runs === '2'")
    value = opened.js("return document.querySelector('[data-key=\"voq.large\"] input').value")
    opened.js("document.querySelector('[data-copy=command]').click()")
    assert opened.until("window.copied").endswith(f"--set voq.large={value}")
    opened.js("document.querySelector('[data-copy=toml]').click()")
    assert tomllib.loads(opened.js("return window.copied"))["voq"]["large"] == int(value)


@needs_browser
def test_a_wrong_value_is_told_and_the_last_run_stays(opened: Browser) -> None:
    opened.js(
        "const box = document.querySelector('[data-key=\"voq.small\"] input'); box.value = '-4';"
        "box.dispatchEvent(new Event('change'));"
    )
    told = opened.until("document.querySelector('.fault').textContent")
    assert "voq.small" in told
    assert opened.js("return document.querySelectorAll('.fl-live canvas').length") == 3


@needs_browser
def test_the_page_says_what_to_do_without_javascript(browser: Browser, server: Server) -> None:
    browser.set("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(server.address)
    assert "needs JavaScript" in browser.js("return document.body.innerText")


def test_the_widget_answers_with_frames() -> None:
    pytest.importorskip("anywidget")
    widget = fl.Live(scenes()["incast"])
    assert {knob["key"] for knob in widget.knobs} >= {"switch.ecn", "tcp.cc"}
    sent: list[Any] = []
    widget.send = sent.append
    widget._answer(widget, {"id": 1, "settings": {"tcp.cc": "dctcp"}}, [])
    widget._answer(widget, {"id": 2, "settings": {"tcp.cc": "nonsense"}}, [])
    assert [one["id"] for one in sent] == [1, 2]
    assert sent[0]["frame"]["digest"] == bench("incast").run({"tcp.cc": "dctcp"})["digest"]
    assert "tcp.cc" in sent[1]["frame"]["error"]


class JupyterWidget:
    """The widget of the last line of a cell, which a Jupyter kernel of its own has executed."""

    def __init__(self, client: Any, cell: str) -> None:
        self.client = client
        client.execute(cell)
        self.state: dict[str, Any] = {}
        while not (shown := self._next(("comm_open", "execute_result", "error"))).get("data", {}).get(VIEW):
            assert "traceback" not in shown, "\n".join(shown.get("traceback", []))
            if shown.get("target_name") == "jupyter.widget" and "_esm" in shown["data"]["state"]:
                self.comm, self.state = shown["comm_id"], shown["data"]["state"]

    def _next(self, kinds: tuple[str, ...]) -> dict[str, Any]:
        while True:
            message = self.client.get_iopub_msg(timeout=60)
            if message["msg_type"] in kinds:
                return dict(message["content"])

    def asked(self, content: dict[str, Any]) -> dict[str, Any]:
        """What the widget answers to a message of its page."""
        data = {"method": "custom", "content": content}
        self.client.shell_channel.send(
            self.client.session.msg("comm_msg", {"comm_id": self.comm, "data": data})
        )
        while (answer := self._next(("comm_msg",))["data"])["method"] != "custom":
            pass
        return dict(answer["content"])


VIEW = "application/vnd.jupyter.widget-view+json"
CELL = """<!doctype html><meta charset="utf-8"><div id="cell"></div><script type="module">
const [esm, css, knobs] = %s;
document.head.append(Object.assign(document.createElement("style"), { textContent: css }));
const url = URL.createObjectURL(new Blob([esm], { type: "text/javascript" }));
const widget = (await import(url)).default;
window.sent = [];
const model = { get: () => knobs, on: (_, f) => { window.answer = f; }, send: (m) => window.sent.push(m) };
widget.render({ model, el: document.getElementById("cell") });
</script>"""


@needs_browser
def test_the_widget_works_with_a_jupyter_kernel(browser: Browser, tmp_path: Path) -> None:
    """The kernel, its messages and the widget are real; a page stands in for that of the notebook."""
    (tmp_path / "scene.toml").write_text(scenes()["pause-tree"].read_text())
    manager, client = start_new_kernel(cwd=str(tmp_path))
    try:
        widget = JupyterWidget(client, 'import firstlight as fl\nfl.Live("scene.toml")')
        page = tmp_path / "cell.html"
        given = json.dumps([widget.state[key] for key in ("_esm", "_css", "knobs")])
        page.write_text(CELL % given.replace("<", "\\u003c"))
        browser.open(page.as_uri())
        for run in ("1", "2"):
            message = browser.until("window.sent?.pop()")
            browser.js("window.answer(arguments[0])", widget.asked(message))
            browser.until(f"document.querySelector('.fl-live').dataset.runs === '{run}'")
            if run == "1":
                assert message["settings"] == {}
                browser.js(SLIDE, "hosts.rate", 60)
        assert list(message["settings"]) == ["hosts.rate"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    browser.js(
        "const time = document.querySelector('input[aria-label=Time]');"
        "time.value = 500; time.dispatchEvent(new Event('input'))"
    )
    assert browser.js("return document.querySelectorAll('[data-state=paused]').length") > 2
    assert browser.said() == []


NOTEBOOK = """\
import marimo

app = marimo.App()


@app.cell
def _():
    import firstlight as fl

    fl.Live("scene.toml")
    return
"""
WITHIN = """
const within = (root, wanted) => [...root.querySelectorAll("*")].flatMap((one) =>
  [...(one.matches(wanted) ? [one] : []), ...(one.shadowRoot ? within(one.shadowRoot, wanted) : [])]);
"""


@needs_browser
def test_the_widget_works_in_marimo(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "scene.toml").write_text(scenes()["incast"].read_text())
    (tmp_path / "notebook.py").write_text(NOTEBOOK)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = f"-m marimo run notebook.py --headless --no-token --host 127.0.0.1 --port {port}".split()
    home = {"HOME": str(tmp_path), "MARIMO_SKIP_UPDATE_CHECK": "1"}
    marimo = subprocess.Popen(
        [sys.executable, *words], cwd=tmp_path, env={**environment(), **home}, stdout=subprocess.DEVNULL
    )
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        browser.open(f"http://127.0.0.1:{port}")
        page = f"(() => {{ {WITHIN} return within(document, '.fl-live')[0]?.dataset.runs; }})()"
        browser.until(f"{page} === '1'", 60)
        browser.js(
            f"{WITHIN} const [slider] = within(document, '[data-key=\"switch.ecn\"] input[type=range]');"
            "slider.value = slider.max / 2; slider.dispatchEvent(new Event('input'));"
        )
        browser.until(f"{page} === '2'", 60)
        assert browser.js(f"{WITHIN} return within(document, '.fl-live canvas').length") == 3
    finally:
        marimo.terminate()
        marimo.wait()
