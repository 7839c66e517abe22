"""LibVT: every call against a made-up machine, to the nanosecond; then real programs."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from firstlight.linux import installed

SOURCES = Path(__file__).parents[3] / "linux" / "libvt"
FACTORS = [1, 5, 20]
NS = 10**9

# ---- Every call, on a machine whose clocks stand still ----

STARTS = {"realtime": 1_700_000_000, "monotonic": 5000, "raw": 5001, "boottime": 7000, "tai": 1_700_000_037}
PASSED, LEFT, SPAN, MOMENT = 100, 3, 1.5, 10
FOREVER = -1


def elapsed(clock: str) -> Callable[[int], tuple[int, int]]:
    """The machine is asked for nothing, the program gets what the clock says."""
    return lambda factor: (0, STARTS[clock] * NS + PASSED * NS // factor)


def got(real: float) -> Callable[[int], tuple[int, int]]:
    return lambda factor: (0, int(real * NS) // factor)


def waits(seconds: float = SPAN, left: float = 0) -> Callable[[int], tuple[int, int]]:
    """A wait lasts longer on the machine, and less of it is left to the program."""
    return lambda factor: (int(seconds * NS) * factor, -(-int(left * NS) // factor))


def until(clock: str) -> Callable[[int], tuple[int, int]]:
    return lambda factor: ((STARTS[clock] + MOMENT * factor) * NS, 0)


def saw(number: int, result: int = 0) -> Callable[[int], tuple[int, int]]:
    return lambda factor: (number, result)


def set_clock(value: int) -> Callable[[int], tuple[int, int]]:
    """A clock can only be set where time is not dilated."""
    return lambda factor: (value, 0) if factor == 1 else (0, -1)


def seconds_up(real: int, factor: int) -> int:
    return -(-real // factor)


EXPECTED: dict[str, Callable[[int], tuple[int, int]]] = {
    "realtime": elapsed("realtime"),
    "realtime_coarse": elapsed("realtime"),
    "monotonic": elapsed("monotonic"),
    "monotonic_coarse": elapsed("monotonic"),
    "raw": elapsed("raw"),
    "boottime": elapsed("boottime"),
    "tai": elapsed("tai"),
    "process": got(PASSED),
    "thread": got(PASSED),
    "other_process": got(PASSED),
    "device": saw(0, PASSED * NS),
    "gettimeofday": elapsed("realtime"),
    "time": elapsed("realtime"),
    "timespec_get": elapsed("realtime"),
    "clock": got(PASSED),
    "times": lambda factor: (0, (STARTS["boottime"] * 100 + PASSED * 100 // factor)),
    "times.tms_utime": lambda factor: (0, 4 * (PASSED // factor)),
    "getrusage": got(2 * PASSED),
    "wait3": got(PASSED),
    "wait4": got(PASSED),
    "sysinfo": lambda factor: (0, STARTS["boottime"] + PASSED // factor),
    "clock_settime": set_clock(1),
    "settimeofday": set_clock(1),
    "adjtime": set_clock(1),
    "nanosleep": waits(left=LEFT),
    "nanosleep.wrong": saw(999_999_999),
    "nanosleep.endless": saw(2**63 - 1),
    "clock_nanosleep": waits(left=LEFT),
    "clock_nanosleep.moment": until("boottime"),
    "clock_nanosleep.processor": waits(),
    "usleep": lambda factor: (int(SPAN * NS) * factor, 0),
    "sleep": lambda factor: (2 * NS * factor, seconds_up(LEFT, factor)),
    "thrd_sleep": waits(left=LEFT),
    "select": waits(left=LEFT),
    "pselect": waits(),
    "poll": waits(),
    "poll.endless": saw(FOREVER),
    "ppoll": waits(),
    "__poll_chk": waits(),
    "__ppoll_chk": waits(),
    "epoll_wait": waits(),
    "epoll_wait.endless": saw(FOREVER),
    "epoll_pwait": waits(),
    "epoll_pwait2": waits(),
    "sigtimedwait": waits(),
    "semtimedop": waits(),
    "mq_timedsend": until("realtime"),
    "mq_timedreceive": until("realtime"),
    "aio_suspend": waits(),
    "alarm": lambda factor: (2 * NS * factor, max(1, round(LEFT / factor))),
    "ualarm": lambda factor: (NS * 3 // 4 * factor, LEFT * 10**6 // factor),
    "setitimer": waits(2.5, 2 * LEFT),
    "getitimer": got(LEFT),
    "timer_settime": waits(2.5, LEFT),
    "timer_settime.moment": until("boottime"),
    "timer_settime.off": saw(0),
    "timer_settime.past": lambda factor: (max(1, (7000 + (1 - 7000) * factor) * NS), 0),
    "timer_gettime": got(LEFT),
    "timer_delete": saw(0),
    "timerfd_settime": waits(2.5, LEFT),
    "timerfd_settime.moment": until("boottime"),
    "timerfd_gettime": got(LEFT),
    "pthread_cond_timedwait": until("realtime"),
    "pthread_cond_timedwait.monotonic": until("monotonic"),
    "pthread_cond_clockwait": until("monotonic"),
    "pthread_mutex_timedlock": until("realtime"),
    "pthread_mutex_clocklock": until("monotonic"),
    "pthread_rwlock_timedrdlock": until("realtime"),
    "pthread_rwlock_clockrdlock": until("monotonic"),
    "pthread_rwlock_timedwrlock": until("realtime"),
    "pthread_rwlock_clockwrlock": until("monotonic"),
    "pthread_timedjoin_np": until("realtime"),
    "pthread_clockjoin_np": until("monotonic"),
    "sem_timedwait": until("realtime"),
    "sem_clockwait": until("monotonic"),
    "cnd_timedwait": until("realtime"),
    "mtx_timedlock": until("realtime"),
    "SO_RCVTIMEO": waits(left=LEFT),
    "SO_LINGER": lambda factor: (2 * factor, seconds_up(LEFT, factor)),
    "SO_MAX_PACING_RATE": lambda factor: (10**6 // factor, LEFT * factor),
    "SO_MAX_PACING_RATE.wide": lambda factor: (10**6 // factor, LEFT * factor),
    "SO_MAX_PACING_RATE.none": lambda factor: (2**32 - 1, LEFT * factor),
    "TCP_USER_TIMEOUT": lambda factor: (1500 * factor, seconds_up(LEFT, factor)),
    "TCP_KEEPIDLE": lambda factor: (min(30_000 * factor, 32_767), seconds_up(LEFT, factor)),
    "TCP_NODELAY": saw(1, LEFT),
    "TCP_INFO": lambda factor: (0, seconds_up(LEFT, factor)),
    "TCP_INFO.tcpi_delivery_rate": lambda factor: (0, LEFT * factor),
    "TCP_INFO.tcpi_pacing_rate": saw(0, -1),
    "TCP_INFO.tcpi_snd_cwnd": saw(0, LEFT),
    "SO_TIMESTAMP": elapsed("realtime"),
    "SO_TIMESTAMPNS": elapsed("realtime"),
    "SO_TIMESTAMPING": elapsed("realtime"),
    "recvmmsg": waits(left=LEFT),
    "recvmmsg.arrival": elapsed("realtime"),
    "SIOCGSTAMP": elapsed("realtime"),
    "SIOCGSTAMPNS": elapsed("realtime"),
    "SYS_clock_gettime": elapsed("monotonic"),
    "FUTEX_WAIT": waits(),
    "FUTEX_WAIT_BITSET": until("monotonic"),
    "FUTEX_WAIT_BITSET.realtime": until("realtime"),
    "FUTEX_LOCK_PI": until("realtime"),
    "SYS_futex_waitv": until("monotonic"),
    "SYS_futex_wait": until("realtime"),
    "SYS_pselect6": waits(),
    "SYS_clock_nanosleep": lambda factor: (int(SPAN * NS) * factor, 4),
    "SYS_ppoll": waits(),
}
"""Name of a line -> of the factor: what the machine was given, and what the program got."""


def compile_c(target: Path, *words: str | Path) -> Path:
    """Compile a C program; its warnings are errors."""
    strict = ["-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-nonnull"]
    command = ["cc", *strict, "-o", str(target), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that makes every call, with the made-up machine behind it."""
    place = tmp_path_factory.mktemp("libvt")
    test = SOURCES / "test"
    machine = compile_c(place / "machine.so", "-fPIC", "-shared", test / "machine.c")
    return compile_c(place / "calls", "-fno-builtin", test / "calls.c", machine)


def environment(factor: int, start: str = "") -> dict[str, str]:
    given = {**os.environ, "LD_PRELOAD": str(installed.LIBVT), "LIBVT_TDF": str(factor)}
    return {**given, "LIBVT_START": start} if start else given


@pytest.mark.parametrize("factor", FACTORS)
def test_every_call_stretches_waits_and_shrinks_what_is_read(calls: Path, factor: int) -> None:
    start = ":".join(str(seconds * NS) for seconds in STARTS.values())
    output = subprocess.run(
        [calls], env=environment(factor, start), capture_output=True, text=True, check=True
    ).stdout
    lines = [re.fullmatch(r"(\S+) saw=(-?\d+) got=(-?\d+)", line) for line in output.splitlines()]
    found = {line[1]: (int(line[2]), int(line[3])) for line in lines if line}
    assert found == {name: expected(factor) for name, expected in EXPECTED.items()}


def test_the_calls_stand_in_the_documents_and_are_tested() -> None:
    exported = subprocess.run(
        ["nm", "-D", "--defined-only", installed.LIBVT], capture_output=True, text=True, check=True
    ).stdout
    names = {line.split()[-1] for line in exported.splitlines()}
    listed = set(re.findall(r"X\((\w+)\)", (SOURCES / "calls.h").read_text())) - {"name"}
    assert names == listed
    page = (SOURCES.parents[1] / "docs" / "models" / "dilated-hosts.md").read_text()
    table = page.partition("## Calls of LibVT")[2].partition("\n## ")[0]
    assert listed == {name for name in re.findall(r"`(\w+)`", table) if not name.isupper()}


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        ("LIBVT_TDF", "0", "write a whole number from 1 to 1000000, such as 20"),
        ("LIBVT_TDF", "2.5", "write a whole number from 1 to 1000000, such as 20"),
        (
            "LIBVT_START",
            "1:2:3",
            "write five numbers of nanoseconds with colons between them, or leave it out",
        ),
    ],
)
def test_wrong_settings_end_the_program(variable: str, value: str, problem: str) -> None:
    done = subprocess.run(
        ["true"], env={**environment(2), variable: value}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (125, f"libvt: {variable}={value}: {problem}\n")


# ---- Programs that it cannot stand before ----

GO_NOTE = """
__asm__(".pushsection .note.go.buildid,\\"a\\",@note; .long 4, 4, 4; "
        ".ascii \\"Go\\\\0\\\\0\\"; .long 0; .popsection");
int main(void) { return 0; }
"""


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Programs by what is wrong with them."""
    place = tmp_path_factory.mktemp("refused")
    (place / "plain.c").write_text("int main(void) { return 0; }\n")
    (place / "go.c").write_text(GO_NOTE)
    found = {
        "is linked statically": compile_c(place / "static", "-static", place / "plain.c"),
        "is a Go program": compile_c(place / "go", place / "go.c"),
        "is linked with another C library": compile_c(
            place / "musl", "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1", place / "plain.c"
        ),
    }
    other = bytearray((place / "static").read_bytes())
    other[4] = 1  # ELFCLASS32
    found["has another word size"] = place / "other"
    (place / "other").write_bytes(other)
    if os.geteuid() == 0:
        found["gets other rights"] = compile_c(place / "setuid", place / "plain.c")
        os.chown(place / "setuid", 65534, 65534)
        (place / "setuid").chmod(0o4755)
    for file in found.values():
        file.chmod(file.stat().st_mode | 0o111)
    return found


STARTS_IT = {
    "the shell": "PROGRAM",
    "exec in the shell": "exec PROGRAM",
    "an empty environment": "env -i PROGRAM",
    "posix_spawn": f'{sys.executable} -c \'import os; os.posix_spawn("PROGRAM", ["x"], {{}})\'',
    "subprocess": f"{sys.executable} -c 'import subprocess; subprocess.run([\"PROGRAM\"])'",
    "a path": "PATH=$(dirname PROGRAM):$PATH; $(basename PROGRAM)",
}


@pytest.mark.parametrize("way", STARTS_IT)
def test_programs_that_would_see_undilated_time_are_refused(refused: dict[str, Path], way: str) -> None:
    for problem, program in refused.items():
        command = STARTS_IT[way].replace("PROGRAM", str(program))
        done = subprocess.run(
            ["/bin/sh", "-c", command], env=environment(2), capture_output=True, text=True, check=False
        )
        assert done.returncode != 0 and f"libvt: {program} {problem}" in done.stderr, done


def test_a_script_is_refused_for_its_interpreter(refused: dict[str, Path], tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f"#! {refused['is linked statically']} -x\n")
    script.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", str(script)], env=environment(2), capture_output=True, text=True, check=False
    )
    assert done.returncode == 126 and f"{refused['is linked statically']} is linked statically" in done.stderr


def test_undilated_programs_are_refused_nothing(refused: dict[str, Path]) -> None:
    static = refused["is linked statically"]
    assert (
        subprocess.run(["/bin/sh", "-c", f"exec {static}"], env=environment(1), check=False).returncode == 0
    )


def test_programs_keep_the_start_in_any_environment() -> None:
    """`env -i` starts a program without variables; those of virtual time come back, and others stay away."""
    command = "export FOO=1; date +%s; env -i LD_PRELOAD=/nonexistent.so date +%s; env -i env"
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        env=environment(20, "0:1:1:1:0"),
        capture_output=True,
        text=True,
        check=True,
    )
    first, second, *variables = done.stdout.split()
    assert 0 <= int(second) - int(first) < 3600 and int(second) < time.time() / 10
    assert {line.partition("=")[0] for line in variables} <= {"LD_PRELOAD", "LIBVT_TDF", "LIBVT_START", "PWD"}
    assert "LIBVT_START=0:1:1:1:0" in variables


# ---- Real programs ----


@dataclass(frozen=True)
class Ran:
    """A program's output, and how long it took on the machine."""

    output: str
    real: float
    factor: int

    def check(self, virtual: float, least: float) -> None:
        """Virtual time passed inside: at least what was asked for, at most what the machine allows.

        Both hold on any machine, however busy; a little is for rounding."""
        assert least - 1e-3 <= virtual <= self.real / self.factor + 1e-3, (virtual, least, self)


def dilated(factor: int, *words: str, text: str | None = None) -> Ran:
    before = time.monotonic()
    done = subprocess.run(
        words, env=environment(factor), input=text, capture_output=True, text=True, check=False
    )
    real = time.monotonic() - before
    assert done.returncode == 0, done
    return Ran(done.stdout, real, factor)


def needs(*tools: str) -> None:
    packages = {"ping": "iputils-ping", "iperf3": "iperf3", "java": "default-jdk-headless"}
    for tool in tools:
        if not shutil.which(tool):
            pytest.skip(f"{tool} is missing: apt install {packages[tool]}")


@pytest.mark.parametrize("factor", FACTORS)
def test_date_and_sleep(factor: int) -> None:
    ran = dilated(factor, "/bin/sh", "-c", "date +%s%N; sleep 0.05; date +%s%N")
    before, after = (int(line) for line in ran.output.split())
    ran.check((after - before) / NS, 0.05)


PYTHON = """
import queue, select, selectors, signal, socket, subprocess, threading, time
def with_timeout(call):
    try:
        call()
    except (TimeoutError, queue.Empty, subprocess.TimeoutExpired):
        pass
pair = socket.socketpair()
pair[0].settimeout(0.02)
selector = selectors.DefaultSelector()
selector.register(pair[0], selectors.EVENT_READ)
signal.signal(signal.SIGALRM, lambda *_: None)
lock = threading.Lock()
lock.acquire()
waits = {
    "sleep": lambda: time.sleep(0.02),
    "event": lambda: threading.Event().wait(0.02),
    "lock": lambda: lock.acquire(timeout=0.02),
    "queue": lambda: queue.Queue().get(timeout=0.02),
    "socket": lambda: pair[0].recv(1),
    "select": lambda: select.select([], [], [], 0.02),
    "selector": lambda: selector.select(0.02),
    "timer": lambda: (signal.setitimer(signal.ITIMER_REAL, 0.02), signal.pause()),
    "sigtimedwait": lambda: signal.sigtimedwait([signal.SIGUSR1], 0.02),
    "process": lambda: subprocess.run(["sleep", "1000"], timeout=0.02),
}
for name, wait in waits.items():
    before = [time.time(), time.monotonic(), time.perf_counter()]
    with_timeout(wait)
    print(name, *(b - a for a, b in zip(before, [time.time(), time.monotonic(), time.perf_counter()])))
"""


@pytest.mark.parametrize("factor", FACTORS)
def test_python_waits_as_long_as_its_clocks_say(factor: int) -> None:
    ran = dilated(factor, sys.executable, "-c", PYTHON)
    rows = [line.split() for line in ran.output.splitlines()]
    assert len(rows) == 10
    for _, *passed in rows:
        for virtual in passed:
            ran.check(float(virtual), 0.02)
    assert sum(float(row[2]) for row in rows) <= ran.real / factor


JAVA = """
public class Waits {
    static final Object monitor = new Object();
    interface Wait { void run() throws Exception; }
    static void measure(Wait wait) throws Exception {
        long nano = System.nanoTime(), milli = System.currentTimeMillis();
        wait.run();
        double nanoSeconds = (System.nanoTime() - nano) / 1e9;
        System.out.println(nanoSeconds + " " + (System.currentTimeMillis() - milli) / 1e3);
    }
    public static void main(String[] words) throws Exception {
        var queue = new java.util.concurrent.LinkedBlockingQueue<String>();
        measure(() -> Thread.sleep(20));
        measure(() -> { synchronized (monitor) { monitor.wait(20); } });
        measure(() -> queue.poll(20, java.util.concurrent.TimeUnit.MILLISECONDS));
        measure(() -> { try (var selector = java.nio.channels.Selector.open()) { selector.select(20); } });
    }
}
"""


@pytest.mark.parametrize("factor", FACTORS)
def test_a_jvm_waits_as_long_as_its_clocks_say(factor: int, tmp_path: Path) -> None:
    needs("java")
    (tmp_path / "Waits.java").write_text(JAVA)
    subprocess.run(["javac", "-d", tmp_path, tmp_path / "Waits.java"], check=True)
    ran = dilated(factor, "java", "-Xint", "-cp", str(tmp_path), "Waits")
    rows = [line.split() for line in ran.output.splitlines()]
    assert len(rows) == 4
    for nano, milli in rows:
        ran.check(float(nano), 0.02)
        ran.check(float(milli), 0.019)


@pytest.mark.parametrize("factor", FACTORS)
def test_ping_measures_round_trips_in_virtual_time(factor: int) -> None:
    needs("ping")
    ran = dilated(factor, "ping", "-c", "3", "-i", "0.02", "127.0.0.1")
    assert "3 received" in ran.output
    times = [float(found) / 1e3 for found in re.findall(r"time=([\d.]+) ms", ran.output)]
    assert len(times) == 3
    for round_trip in times:
        ran.check(round_trip, 0)
    total = re.search(r"time (\d+)ms", ran.output)
    assert total
    ran.check(int(total[1]) / 1e3, 0.039)


@pytest.mark.parametrize("factor", FACTORS)
def test_iperf3_runs_for_virtual_seconds(factor: int) -> None:
    needs("iperf3")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    server = subprocess.Popen(
        ["iperf3", "-s", "-1", "-p", port, "--forceflush"],
        env=environment(factor),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout and "-" in server.stdout.readline() and "listening" in server.stdout.readline()
    try:
        ran = dilated(factor, "iperf3", "-c", "127.0.0.1", "-p", port, "-n", "20M", "-J", "-b", "2G")
        server.communicate(timeout=60)
    finally:
        server.kill()
    end = json.loads(ran.output)["end"]["sum_sent"]
    # 20 MiB at 2 Gb/s.
    ran.check(end["seconds"], 0.9 * 20 * 2**20 * 8 / 2e9)
    assert end["bits_per_second"] == pytest.approx(end["bytes"] * 8 / end["seconds"])
