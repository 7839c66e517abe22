#!/usr/bin/env python3
"""Stands in for a kernel: reads its command line and writes its files of the run's directory.

The experiment's name says what it does: ``good``, ``spins``, ``panics`` and so on.
"""

import json
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

WORDS = dict(word.partition("=")[::2] for word in sys.argv[1:])
RUN = Path(WORDS["FIRSTLIGHT_RUN"]).resolve()
PLAN = json.loads((RUN / "plan.json").read_text())
MODE = (RUN / "experiment.toml").read_text().split('"')[1]


def progress(share: float) -> None:
    """Record virtual time."""
    (RUN / "progress").write_bytes(struct.pack("<QQ", int(share * PLAN["duration"]), 1000))


def finish() -> None:
    """Write an outcome."""
    columns: list[dict[str, Any]] = [
        {"name": "metric", "doc": "", "type": "text", "values": ["p99_all_us", "arguments"]},
        {"name": "unit", "doc": "", "type": "text", "values": ["us", ""]},
        {"name": "value", "doc": "", "type": "number", "values": [None, len(sys.argv)]},
    ]
    ends: list[dict[str, Any]] = [
        {"name": "index", "doc": "", "type": "integer", "values": [1, 2]},
        {"name": "up", "doc": "", "type": "flag", "values": [True, False]},
    ]
    outcome = {
        "manifest": {
            "name": MODE,
            "digest": "00ff",
            "seed": int(WORDS["firstlight_seed"]),
            "time_scale": 1,
            "words": WORDS,
        },
        "tables": [
            {"name": "summary", "doc": "", "columns": columns},
            {"name": "week", "doc": "", "columns": ends},
        ],
    }
    (RUN / "programs" / "ping.out").write_text("3 packets transmitted\n")
    (RUN / "programs" / "ping.err").write_text("")
    (RUN / "part").write_text(json.dumps(outcome))
    (RUN / "part").rename(RUN / "outcome.json")


def main() -> None:
    """Behave as the experiment's name says."""
    name = "swapper" if MODE == "idles" else "iperf3"
    began = time.monotonic_ns()

    def answer(*_: object) -> None:
        now = time.monotonic_ns() - began if MODE == "silent" else 12_000_000
        print(f"firstlight: at {now} ns the processor runs '{name}' (pid 41)", flush=True)

    signal.signal(signal.SIGUSR2, answer)
    print("Linux version 7.2", flush=True)
    if MODE == "refuses":
        sys.exit("firstlight: engine.so: the kernel has interface 1, this engine 2")
    if MODE == "never-starts":
        time.sleep(1000)
    for share in (0.1, 0.5):
        progress(share)
        time.sleep(0.1)
    if MODE == "silent":
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            time.sleep(0.1)
    if MODE in ("spins", "idles", "waits"):
        sleeper = [sys.executable, "-c", "import time; time.sleep(1000)", str(RUN)]
        subprocess.Popen(sleeper)
        subprocess.Popen(sleeper, process_group=0)
        if MODE == "waits":
            (RUN / "waits").touch()
        while True:
            time.sleep(1)
    if MODE == "panics":
        print("[    1.5] Kernel panic - not syncing: Attempted to kill init!", flush=True)
        os.abort()
    if MODE == "dies":
        os.kill(os.getpid(), signal.SIGBUS)
    if MODE == "fails":
        why = "program ping on host0 ended with exit code 2"
        (RUN / "failure.json").write_text(json.dumps({"error": why}))
        sys.exit(1)
    if MODE == "forgets":
        return
    if MODE == "babbles":
        (RUN / "outcome.json").write_text('{"manifest": {}}')
        return
    finish()
    if MODE == "lingers":
        time.sleep(1000)


if __name__ == "__main__":
    main()
