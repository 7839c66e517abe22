"""Runs on Linux hosts, in a real kernel: results, programs, repeatability, and ends of all kinds."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import firstlight as fl
import pytest
from conftest import SMALL, Command, argv, environment
from etalon import LOOP, fabric
from firstlight.linux import directory, doctor, kernels
from test_supervision import run_directories
from writers import MSS, demand, writers

pytestmark = pytest.mark.usefixtures("kernel")
LINUX = {"hosts.kind": "linux"}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """An experiment of 24 ms whose run's directory can be distinguished from others'."""
    return with_programs(tmp_path)


def with_programs(folder: Path, *tables: str) -> Path:
    """The small experiment and some programs."""
    file = folder / "small.toml"
    programs = "".join(f"\n[[program]]\n{table}\n" for table in tables)
    file.write_text(f"{SMALL}{programs}\n# {folder}\n")
    return file


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path) -> Iterator[None]:
    """No test leaves a kernel, a program in one, or a run's directory."""
    yield
    deadline = time.monotonic() + 10
    while (left := kernels_of(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left == {}
    assert run_directories(tmp_path) == []


HDFS = """
duration = "100ms"

[fabric]
kind = "leaf_spine"
racks = 2
hosts_per_rack = 2
spines = 1

[hosts]
kind = "linux"
rate = "10Gbps"

[[workload]]
kind = "hdfs"
files = 2
file_size = "2MB"
{more}
# {folder}
"""

SHUFFLE = f"""
duration = "6ms"
{fabric()}{LOOP}
[[workload]]
kind = "shuffle"
from = "rack0"
to = "rack1"
size = "1MB"
parallel = 1
start = "1999us"
"""


def with_messages(folder: Path, more: str = "") -> Path:
    """Two files are written to HDFS."""
    file = folder / "hdfs.toml"
    file.write_text(HDFS.format(folder=folder, more=more))
    return file


def test_a_run_of_messages_repeats(tmp_path: Path) -> None:
    first, again = (fl.run(with_messages(tmp_path)) for _ in range(2))
    assert first.digest == again.digest
    assert first.jobs.equals(again.jobs) and first.flows.equals(again.flows)
    assert first.summary["jobs_complete"] == 2
    assert first.manifest["finished"] and first.manifest["elapsed_us"] < 100_000, "it ends with its messages"


GOAL = """num_ranks 4
rank 0 {
a: send 100000b to 1 tag 0
b: recv 100000b from 3 tag 0
b requires a
}
rank 1 {
a: recv 100000b from 0 tag 0
b: calc 1000000
c: send 50000b to 3 tag 0
b requires a
c requires b
}
rank 2 {
a: calc 1
}
rank 3 {
a: recv 50000b from 1 tag 0
b: send 100000b to 0 tag 0
b requires a
}
"""


def test_an_application_in_a_file_beside_the_experiment_is_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.goal").write_text(GOAL)
    Path("x.toml").write_text(
        HDFS.split("[[workload]]")[0] + '[[workload]]\nkind = "goal"\nfile = "a.goal"\n'
    )
    took = {}
    for kind in ("linux", "simulated"):
        jobs = fl.run("x.toml", {"hosts.kind": kind}).table("jobs")
        took[kind] = jobs["duration_us"][0]
    assert 1_000 < took["linux"] == pytest.approx(took["simulated"], rel=0.05)


REQUESTS = """
kind = "key_value"
reads = 8
values = 1
size = "100B"
request = "1000B"
header = "100B"
interval = "99ms"
"""

TWO_PIECES = f"""
duration = "1s"

[fabric]
kind = "star"
hosts = 4

[hosts]
kind = "linux"
rate = "10Gbps"

[[workload]]
name = "stalled"
from = "host1"
to = "host0"
nagle = true
interactive = true
{REQUESTS}
[[workload]]
name = "quick"
from = "host3"
to = "host2"
{REQUESTS}
# {{folder}}
"""


def test_a_workload_has_nagles_algorithm_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "two-pieces.toml"
    file.write_text(TWO_PIECES.format(folder=tmp_path))
    for hosts in ("linux", "simulated"):
        jobs = fl.run(file, {"hosts.kind": hosts}).jobs
        stalled, quick = (jobs.duration_us[jobs.workload == name] for name in ("stalled", "quick"))
        assert stalled.between(36_000, 45_000).all(), (hosts, list(stalled))
        assert (quick < 100).all(), (hosts, list(quick))


def test_incomplete_messages_give_a_warning(tmp_path: Path) -> None:
    """The run ends during the writes: no job is complete, and a job that has not begun has no start."""
    result = fl.run(with_messages(tmp_path), {"duration": "200us"})
    assert result.jobs["duration_us"].isna().all() and (result.jobs["start_us"] == 0).all()
    assert result.flows["start_us"].isna().any() and not result.flows["start_us"].isna().all()
    assert not result.manifest["finished"]


def test_a_program_that_dies_amid_messages_ends_the_run(tmp_path: Path) -> None:
    program = '[[program]]\non = "host0"\nrun = "sleep 0.001; kill -9 $$"'
    with pytest.raises(fl.RunError, match=r"on host0 .* was ended by signal 9"):
        fl.run(with_messages(tmp_path, program), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_control_loop_counts_what_messages_write(tmp_path: Path) -> None:
    """Each of four reducers has asked for its first 1 MB when the second week begins, a microsecond later,
    and for no more; nothing has passed the VOQ yet."""
    file = tmp_path / f"{tmp_path.name}.toml"
    file.write_text(SHUFFLE)
    for hosts in ("simulated", "linux"):
        circuits = fl.run(file, {"hosts.kind": hosts}).table("circuits")
        heard = circuits[circuits["demand_bytes"] > 0].iloc[0]
        assert (heard["src"], heard["dst"], heard["demand_bytes"]) == (0, 1, 4_000_000), hosts


def test_a_control_loop_counts_what_programs_write(tmp_path: Path) -> None:
    """Before the second week one program writes 4 MB at once, and waits; another offers 50 MB, of which what
    fits is taken, and in the second week gives its connection up. Over so slow a network one packet of each
    passes before that week, and another one a week at most."""
    file = tmp_path / "writes.toml"
    file.write_text(f'duration = "9ms"{fabric()}{LOOP}{writers(tmp_path, stay=True)}')
    slow = {**LINUX, "packet.rate": "10Mbps"}
    result = fl.run(file, slow)
    heard = demand(result)
    assert heard[2, 0, 1] == 4_000_000 - MSS
    taken = int(result.programs["partial"])
    assert 10_000 < taken < 5_000_000
    assert heard[2, 2, 0] == taken - MSS
    assert heard[3, 0, 1] in (heard[2, 0, 1], heard[2, 0, 1] - MSS)
    assert heard.get((3, 2, 0), 0) == 0
    assert fl.run(file, slow).digest == result.digest
    oracle, voq = (demand(fl.run(file, {**slow, "control.demand": by})) for by in ("oracle", "voq"))
    assert oracle[2, 0, 1] == heard[2, 0, 1], "it knows what is written"
    assert voq.max() < 150_000, "a VOQ has no more than it holds"


def kernels_of(folder: Path) -> dict[int, str]:
    """Kernels of ``folder``'s runs and all inside them, by their working directory or command line."""
    runs = [str(p) for p in run_directories(folder)]
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            place = os.readlink(entry / "cwd")
        except OSError:
            continue
        if any(run in words or run in place for run in runs):
            found[int(entry.name)] = words
    return found


@contextmanager
def load() -> Iterator[None]:
    """Two busy processes on each processor."""
    code = "while True: pass"
    busy = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def test_a_run_on_linux_hosts_gives_the_tables_of_a_run(small: Path, tmp_path: Path) -> None:
    simulated, linux = fl.run(small), fl.run(small, LINUX, out=tmp_path / "r")
    assert linux.tables == simulated.tables
    for name in simulated.tables:
        assert list(linux.table(name).columns) == list(simulated.table(name).columns)
    assert linux.manifest["conservation"]["ok"] is True
    assert linux.manifest["kernel"]["hz"] == 250
    assert linux.manifest["spec"]["hosts"]["kind"] == "linux"
    assert linux.week.equals(simulated.week)
    assert linux.summary["circuit_utilization_pct"] == pytest.approx(
        simulated.summary["circuit_utilization_pct"], abs=15
    )
    assert (linux.flows["bytes_received"] > 1e6).all()


@pytest.mark.parametrize("cc", ["bbr", "cubic"])
def test_a_run_repeats_to_the_bit_under_load(small: Path, cc: str) -> None:
    spec = {**LINUX, "tcp.cc": cc, "duration": "96ms"}
    quiet = fl.run(small, spec)
    with load():
        busy = fl.run(small, spec)
    assert busy.digest == quiet.digest
    assert busy.summary == pytest.approx(quiet.summary, nan_ok=True)
    assert fl.run(small, {**spec, "seed": 8}).digest != quiet.digest


def test_parallel_runs_give_the_results_of_single_runs(small: Path, tmp_path: Path) -> None:
    done = fl.sweep(small, LINUX, {"seed": [7, 8, 9]}, out=tmp_path / "s", jobs=3)
    assert done.frame["digest"].nunique() == 3
    assert done.results[0].digest == fl.run(small, LINUX).digest


def test_parameters_of_cubic_are_the_kernels(tmp_path: Path) -> None:
    """CUBIC's factor must be set when the kernel starts, because only then CUBIC computes its rate beside
    Reno from it."""
    folder = "/sys/module/tcp_cubic/parameters"
    file = with_programs(tmp_path, f'on = "host0"\nname = "told"\nrun = "cd {folder}; cat beta hystart"')
    chosen = fl.run(file, {**LINUX, "cubic.beta": 0.5, "cubic.hystart": False})
    assert chosen.programs["told"].split() == ["512", "0"]
    assert fl.run(file, LINUX).programs["told"].split() == ["717", "1"]


def test_stretching_the_fabric_changes_what_tcp_does(small: Path) -> None:
    slow = fl.run(small, {**LINUX, "time_scale": 20})
    assert slow.digest != fl.run(small, LINUX).digest
    assert slow.week.equals(fl.run(small, LINUX).week), "results are in the experiment's own units"


def test_simulated_flows_run_beside_real_ones(small: Path) -> None:
    more = '\n[[flows]]\nfrom = "rack0"\nto = "rack1"\nhosts = "linux"\ncc = "bbr"\n'
    small.write_text(small.read_text() + more)
    both = fl.run(small)
    assert sorted(both.flows["cc"]) == ["bbr"] * 4 + ["cubic"] * 4
    assert (both.flows.groupby("cc")["bytes_received"].sum() > 1e5).all()
    assert both.digest == fl.run(small).digest


def test_throughput_is_reported_of_all_flows_and_takes_no_virtual_time(small: Path) -> None:
    """Each interval has the bytes that arrived in it. Sampling takes no virtual time: packets come at the
    same times with any interval and without sampling, except for the kernel's random numbers, which CUBIC
    does not use."""
    more = '\n[[flows]]\nfrom = "rack0"\nto = "rack1"\nhosts = "linux"\nstart = "10250us"\n'
    small.write_text(small.read_text() + more)
    untold, told, often = (
        fl.run(small, {"time_scale": 2} | ({"measure.throughput": every} if every else {}))
        for every in ("", "33333333ps", "5us")
    )
    assert told.flows.equals(untold.flows)
    assert told.digest == often.digest
    rows = told.table("throughput")
    starts = rows["time_us"].groupby(rows["flow"] // 4).min()
    assert starts[0] == 4800, "simulated flows, when the warm-up ends"
    assert 10_000 - 34 < starts[1] < 11_000
    mean = rows["goodput_gbps"].sum() * 33.333333 / 19_200
    assert mean == pytest.approx(told.summary["goodput_gbps"], abs=8 * MSS * 8e-9 / 19.2e-3)


def test_programs_use_any_congestion_control_of_the_kernel(tmp_path: Path) -> None:
    told = "cat /proc/sys/net/ipv4/tcp_congestion_control"
    file = with_programs(tmp_path, f'on = "host0"\nname = "told"\nrun = "{told}"')
    assert fl.run(file, LINUX | {"tcp.cc": "scalable"}).programs["told"] == "scalable\n"


def test_programs_run_and_their_output_is_kept(tmp_path: Path) -> None:
    (tmp_path / "names.py").write_text("import socket; print(socket.gethostbyname('rack1.host1'))")
    file = with_programs(
        tmp_path,
        'on = "host0"\nrun = "ping -c 3 -i 0.002 host8"\nname = "ping"',
        'on = "host1"\nrun = "python3 -c \'import socket; print(socket.gethostbyname(\\"rack1.host1\\"))\'"\n'
        'name = "names"',
        'on = "host2"\nrun = "echo begun; sleep 1000"\nname = "server"\nserver = true',
        'on = "host3"\nrun = "tail -n 1 /etc/hosts"\nname = "last"',
    )
    result = fl.run(file, LINUX, out=tmp_path / "r")
    assert "3 packets transmitted, 3 received, 0% packet loss" in result.programs["ping"]
    assert result.programs["names"].startswith("10.")
    assert result.programs["server"] == "begun\n"
    assert result.programs["last"] == "10.0.2.4 host11 rack2.host3\n", (
        "a host that has no program and no flow"
    )
    assert (tmp_path / "r" / "programs" / "ping.err").is_file()
    assert result.programs == fl.run(file, LINUX).programs


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("no-such-program 3", "the command does not exist"),
        ("echo so much; exit 3", "code 3"),
        ("kill -9 $$", "signal 9"),
    ],
)
def test_a_program_that_fails_ends_the_run(tmp_path: Path, command: str, said: str) -> None:
    file = with_programs(tmp_path, f'on = "host0"\nrun = "{command}"\nname = "mine"')
    with pytest.raises(fl.RunError, match=rf"(?s)mine.*{said}.*its logs are in ") as raised:
        fl.run(file, LINUX, out=tmp_path / "r")
    assert (tmp_path / "r.failed" / "programs" / "mine.err").is_file(), str(raised.value)


def test_each_host_has_its_name_and_programs_their_users(tmp_path: Path) -> None:
    file = with_programs(
        tmp_path,
        'on = "rack1.host0"\nname = "named"\nrun = "hostname; echo $FIRSTLIGHT_HOST; getent hosts host0"',
        'on = "host0"\nname = "root"\nrun = "id -u; echo $HOME"',
        'on = "host0"\nname = "other"\nrun = "id -un; id -Gn; echo $USER $LOGNAME"\nuser = "nobody"',
    )
    said = fl.run(file, LINUX).programs
    own, told, *host0 = said["named"].split()
    assert (own, host0[:2]) == (told, ["10.0.0.1", "host0"])
    assert said["root"] == "0\n/\n"
    assert said["other"] == "nobody\nnogroup\nnobody nobody\n"
    assert not Path("/.uml").exists()


def test_a_user_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    file = with_programs(tmp_path, 'on = "host0"\nname = "mine"\nrun = "true"\nuser = "nobody-at-all"')
    with pytest.raises(fl.RunError, match=r"program mine: there is no user 'nobody-at-all' in /etc/passwd"):
        fl.run(file, LINUX)


def test_a_program_that_has_not_ended_is_an_error(tmp_path: Path) -> None:
    file = with_programs(tmp_path, 'on = "host0"\nname = "mine"\nrun = "sleep 1000"')
    with pytest.raises(
        fl.RunError, match=r"program mine on host0 \(sleep 1000\) had not ended .*: set server = true"
    ):
        fl.run(file, LINUX)


@pytest.mark.parametrize("server", ["true", "false"])
def test_a_program_without_end_of_output_ends_the_run(tmp_path: Path, server: str) -> None:
    """Both outputs count. `yes` never sleeps, so virtual time stands still while it writes."""
    run = f'run = "yes >&{2 if server == "true" else 1}"\nserver = {server}'
    file = with_programs(tmp_path, f'on = "host0"\nname = "mine"\n{run}')
    with pytest.raises(
        fl.RunError, match=r"program mine on host0 \(yes .*\) wrote more than 64 MiB to its output:"
    ):
        fl.run(file, LINUX, out=tmp_path / "r")
    kept = sum(f.stat().st_size for f in (tmp_path / "r.failed" / "programs").iterdir() if f.is_file())
    assert 64 << 20 < kept < 1 << 30


def test_too_much_output_is_noticed_after_the_end(tmp_path: Path) -> None:
    run = "head -c 64M /dev/zero; echo"
    file = with_programs(tmp_path, f'on = "host0"\nname = "mine"\nrun = "{run}"')
    with pytest.raises(fl.RunError, match=r"program mine on host0 .* wrote more than 64 MiB"):
        fl.run(file, LINUX, out=tmp_path / "r")
    file = with_programs(tmp_path, f'on = "host0"\nname = "mine"\nrun = "{run.removesuffix("; echo")}"')
    assert len(fl.run(file, LINUX).programs["mine"]) == 64 << 20


def test_programs_joined_by_pipes_end(tmp_path: Path) -> None:
    """A pipe into netcat, whose end is the end of the connection; the same digest each time. Once the pipe
    has ended netcat asks without end whether it may send, and is never made to wait."""
    if shutil.which("nc") is None:
        pytest.skip("no nc: apt install netcat-openbsd")
    file = with_programs(
        tmp_path,
        'on = "host1"\nname = "taken"\nrun = "nc -l -p 80 | wc -c"',
        'on = "host0"\nname = "sent"\nstart = "1ms"\nrun = "head -c 1M /dev/zero | nc -N host1 80"',
    )
    result = fl.run(file, LINUX)
    assert result.programs == {"sent": "", "taken": f"{1 << 20}\n"}
    assert result.digest == fl.run(file, LINUX).digest


COUNTER = r"""
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>
int main(void)
{
	unsigned int processor, reads = 0;
	struct timespec now;
	unsigned long long before, after;

	before = __rdtsc();
	clock_gettime(CLOCK_MONOTONIC, &now);
	after = __rdtscp(&processor);
	printf("%d %u\n", before <= after && after - now.tv_sec * 1000000000ull - now.tv_nsec < 10, processor);
	usleep(1000);
	printf("%llu\n", (__rdtsc() - after) / 1000);
	for (after = __rdtsc(); __rdtsc() == after; reads++)
		;
	printf("%u\n", reads);
	while (__rdtsc() - after < 3000000)
		;
	printf("%llu\n", __rdtsc());
}
"""


def test_the_counter_of_the_processor_counts_virtual_time(tmp_path: Path) -> None:
    """RDTSC and RDTSCP agree with the clock, advance after some readings when a program polls, and repeat."""
    kernel = kernels.find(250)
    if not kernel.seccomp:
        pytest.skip("older kernels do not trap the counter")
    (tmp_path / "counter.c").write_text(COUNTER)
    subprocess.run(["cc", "-O1", "-o", tmp_path / "counter", tmp_path / "counter.c"], check=True)
    told = f"{tmp_path}/counter; cat /proc/cpuinfo"
    file = with_programs(tmp_path, f'on = "host0"\nname = "told"\nrun = "{told}"')
    said = fl.run(file, LINUX).programs["told"]
    assert said.splitlines()[:3] == ["1 0", "1000", "254"]
    assert "model name\t: Firstlight\n" in said
    assert said == fl.run(file, LINUX).programs["told"]


CLOCK = r"""
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* Whether the C library and the kernel itself tell the same time. */
static int agree(int clock)
{
	struct timespec own, kernels;
	struct timeval tv;

	clock_gettime(clock, &own);
	syscall(SYS_clock_gettime, clock, &kernels);
	gettimeofday(&tv, NULL);
	return own.tv_sec == kernels.tv_sec && own.tv_nsec == kernels.tv_nsec &&
		(clock != CLOCK_REALTIME || (tv.tv_sec == own.tv_sec && tv.tv_usec == own.tv_nsec / 1000));
}

int main(void)
{
	struct user_regs_struct regs;
	int calls = 0, status, reads;
	struct timespec now;
	pid_t child = fork();

	if (!child) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		usleep(1000);
		for (reads = 0; reads < 300; reads++)
			clock_gettime(CLOCK_MONOTONIC, &now);
		_exit(0);
	}
	waitpid(child, &status, 0);
	while (ptrace(PTRACE_SYSCALL, child, 0, 0), waitpid(child, &status, 0), WIFSTOPPED(status)) {
		ptrace(PTRACE_GETREGS, child, 0, &regs);
		calls += regs.orig_rax == SYS_clock_gettime;
	}
	usleep(1000);
	printf("%d %d %d\n", calls / 2, agree(CLOCK_REALTIME), agree(CLOCK_MONOTONIC));
}
"""


def test_reads_of_the_clock_are_no_system_calls(tmp_path: Path) -> None:
    """Of 300 reads in a row the first 256 take no time, and need no system call; all tell the same time as
    the kernel."""
    if not kernels.find(250).seccomp:
        pytest.skip("older kernels make a system call of each")
    (tmp_path / "clock.c").write_text(CLOCK)
    subprocess.run(["cc", "-O1", "-o", tmp_path / "clock", tmp_path / "clock.c"], check=True)
    file = with_programs(tmp_path, f'on = "host0"\nname = "told"\nrun = "{tmp_path}/clock"')
    assert fl.run(file, LINUX).programs["told"] == "44 1 1\n"


REGISTERS = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static int there[2], back[2], wrong, caught;
static char stack[65536];

/* Reads a byte with a number in a register that no argument is in, and with one in a register of floats. */
static long read_with(int file, long number, double *real)
{
	register long r12 asm("r12") = number;
	char byte;
	long got;

	asm volatile("movsd %2, %%xmm7; syscall; movsd %%xmm7, %2"
		: "=a"(got), "+r"(r12), "+m"(*real)
		: "0"(0L), "D"((long)file), "S"(&byte), "d"(1L)
		: "rcx", "r11", "xmm7", "memory");
	wrong += r12 != number;
	return got;
}

static void *answer(void *second)
{
	int from = second ? back[0] : there[0], to = second ? there[1] : back[1];
	double real = second ? 0.5 : 0.25, before = real;

	for (int i = 0; i < 500; i++) {
		wrong += read_with(from, 2 * i + !second, &real) != 1 || real != before;
		wrong += write(to, "", 1) != 1;
	}
	return NULL;
}

static void on_alarm(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	char here;

	caught = registers[REG_R12] + (&here >= stack && &here < stack + sizeof stack);
}

int main(void)
{
	stack_t other = { .ss_sp = stack, .ss_size = sizeof stack };
	struct sigaction action = { .sa_sigaction = on_alarm, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	struct itimerval soon = { .it_value.tv_usec = 50 };
	struct user_regs_struct registers;
	pthread_t threads[2];
	double real = 1.5;
	int state, child;

	wrong += pipe(there) + pipe(back);
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, answer, (void *)i);
	wrong += write(there[1], "", 1) != 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	wrong += read_with(there[0], 1, &real) != 1;

	sigaltstack(&other, NULL);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	wrong += read_with(there[0], 1000, &real) != -4; /* EINTR */
	wrong += caught != 1001 || real != 1.5;

	child = fork();
	if (!child)
		_exit(read_with(there[0], 2000, &real));
	usleep(100);
	ptrace(PTRACE_ATTACH, child, 0, 0);
	waitpid(child, &state, 0);
	ptrace(PTRACE_GETREGS, child, 0, &registers);
	wrong += registers.r12 != 2000 || registers.orig_rax != 0;
	ptrace(PTRACE_DETACH, child, 0, 0);
	wrong += write(there[1], "", 1) != 1;
	waitpid(child, &state, 0);
	wrong += !WIFEXITED(state) || WEXITSTATUS(state) != 1;
	printf("%d wrong", wrong);
}
"""


def test_registers_of_a_program_in_a_system_call_are_found(tmp_path: Path) -> None:
    """Signals, other threads and debuggers find them, though the kernel answers most calls without them."""
    (tmp_path / "registers.c").write_text(REGISTERS)
    program = tmp_path / "registers"
    subprocess.run(["cc", "-O1", "-pthread", "-o", program, f"{program}.c"], check=True)
    file = with_programs(tmp_path, f'on = "host0"\nname = "told"\nrun = "{tmp_path}/registers"')
    assert fl.run(file, LINUX).programs["told"] == "0 wrong"


def test_a_stopped_process_of_a_program_goes_on(tmp_path: Path) -> None:
    """A process in a system call makes it anew when it continues, and the run is the same."""
    loop = "for i in $(seq 400); do echo $i; done | md5sum"
    file = with_programs(tmp_path, f'on = "host0"\nname = "told"\nrun = "{loop}"')
    alone = fl.run(file, LINUX)
    run = subprocess.Popen(argv(["run", str(file), "--hosts", "linux", "--out", "r"]), cwd=tmp_path)
    stopped = set()
    while run.poll() is None:
        for process in kernels_of(tmp_path):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
                time.sleep(0.005)
                os.kill(process, signal.SIGCONT)
                stopped.add(process)
        time.sleep(0.01)
    assert run.returncode == 0
    assert len(stopped) > 1, "the kernel, and a process of a program"
    assert fl.load(tmp_path / "r").digest == alone.digest


MODEL = r"""
#include <cpuid.h>
#include <stdio.h>
int main(void)
{
	unsigned int at[13] = { 0 }, i;

	__cpuid(0, at[11], at[0], at[2], at[1]);
	for (i = 0; i < 2; i++)
		__cpuid(0x80000002 + i, at[3 + 4 * i], at[4 + 4 * i], at[5 + 4 * i], at[6 + 4 * i]);
	printf("%.12s|%s|", (char *)at, (char *)(at + 3));
	__cpuid_count(7, 0, at[0], at[1], at[2], at[3]);
	printf("%x %x %x %x|", at[0], at[1], at[2], at[3]);
	__cpuid(1, at[0], at[1], at[2], at[3]);
	printf("%d%d%d", !!(at[2] & bit_SSE4_2), !!(at[2] & bit_RDRND), !!(at[2] & bit_AVX));
}
"""


def test_programs_do_not_see_the_machines_processor(tmp_path: Path) -> None:
    """CPUID answers the same on every machine that can trap it: no model, no RDRAND or RDSEED, no AVX. On
    others programs see the machine's own processor, as doctor says."""
    (tmp_path / "model.c").write_text(MODEL)
    subprocess.run(["cc", "-O1", "-o", tmp_path / "model", tmp_path / "model.c"], check=True)
    own = subprocess.run([tmp_path / "model"], check=True, capture_output=True, text=True).stdout
    hidden = kernels.find(250).seccomp and doctor.traps_cpuid()
    file = with_programs(tmp_path, f'on = "host0"\nname = "told"\nrun = "{tmp_path}/model"')
    assert fl.run(file, LINUX).programs["told"] == ("AuthenticAMD|Firstlight|0 0 0 0|100" if hidden else own)


def test_a_program_that_polls_the_clock_ends(tmp_path: Path) -> None:
    """Time stands still while a program computes, but each read of the clock advances it."""
    wait = "import time\nend = time.time() + 0.005\nwhile time.time() < end: pass\nprint('over')"
    (tmp_path / "wait.py").write_text(wait)
    file = with_programs(tmp_path, f'on = "host0"\nrun = "python3 {tmp_path}/wait.py"\nname = "wait"')
    result = fl.run(file, LINUX, patience=30)
    assert result.programs == {"wait": "over\n"}
    assert result.digest == fl.run(file, LINUX, patience=30).digest


def test_a_program_that_computes_without_end_is_named(tmp_path: Path) -> None:
    (tmp_path / "spin.py").write_text("while True: pass")
    file = with_programs(tmp_path, f'on = "host0"\nrun = "python3 {tmp_path}/spin.py"\nname = "spin"')
    with pytest.raises(fl.RunError, match=r"stood still for 2 s, .* the processor runs 'python3'"):
        fl.run(file, LINUX, out=tmp_path / "r", patience=2)
    assert "the processor runs 'python3'" in (tmp_path / "r.failed" / "console.log").read_text()


@pytest.mark.parametrize("ended", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_its_command(small: Path, tmp_path: Path, ended: signal.Signals) -> None:
    with_programs(tmp_path, 'on = "host0"\nrun = "while true; do sleep 0.001; done"\nname = "loop"')
    run = subprocess.Popen(
        argv(["run", "small.toml", "--hosts", "linux", "--set", "duration=1000s", "--out", "r"]),
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 60
        while len(kernels_of(tmp_path)) < 3:  # the kernel, the first program, the loop
            assert time.monotonic() < deadline, "waited a minute in vain"
            time.sleep(0.05)
        run.send_signal(ended)
        _, errors = run.communicate(timeout=60)
    finally:
        run.kill()
    assert run.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[ended]
    assert "Traceback" not in errors
    deadline = time.monotonic() + 10
    while kernels_of(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert kernels_of(tmp_path) == {}
    for path in run_directories(tmp_path):
        assert ended != signal.SIGINT
        os.utime(path, (0, 0))
        directory.clear_leftovers(path.parent)
    assert not (tmp_path / "r").exists()


def test_a_process_that_begins_as_its_kernel_is_killed_ends_too(small: Path, tmp_path: Path) -> None:
    with_programs(tmp_path, 'on = "host0"\nrun = "while true; do sleep 0.001; done"\nname = "loop"')
    words = ["run", "small.toml", "--hosts", "linux", "--set", "duration=1000s", "--out", "r"]
    for _ in range(12):
        run = subprocess.Popen(argv(words), cwd=tmp_path, env=environment(), stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 60
            while len(kernels_of(tmp_path)) < 3:
                assert time.monotonic() < deadline, "waited a minute in vain"
                time.sleep(0.02)
            # The only child of its run: process ids wrap, so that it need not have the lowest of all.
            [kernel] = map(int, Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split())
            children = os.open(f"/proc/{kernel}/task/{kernel}/children", os.O_RDONLY)
            before = set(os.pread(children, 4096, 0).split())
            while (now := set(os.pread(children, 4096, 0).split())) <= before:
                assert time.monotonic() < deadline, "waited a minute in vain"
                before = now
            run.kill()
            with suppress(ProcessLookupError):  # the kernel ends with its command, but not before this
                os.kill(kernel, signal.SIGKILL)
            os.close(children)
        finally:
            run.kill()
        run.wait()
        deadline = time.monotonic() + 10
        while kernels_of(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert kernels_of(tmp_path) == {}
    for path in run_directories(tmp_path):
        os.utime(path, (0, 0))
        directory.clear_leftovers(path.parent)


def test_compare_overlays_both_kinds_of_hosts(small: Path, command: Command) -> None:
    done = command("compare", "small.toml", "--out", "c")
    assert done.returncode == 0, done.stderr
    assert "circuit_utilization_pct" in done.stdout
    assert "Divergence" in done.stdout
    comparison = fl.load_comparison(small.parent / "c")
    assert comparison.linux.manifest["kernel"]["hz"] == 250
    known = {d.name: d.value for d in comparison.divergence}
    unknown = {"completion", "waits", "jobs"}
    assert {name for name, value in known.items() if value is None} == unknown
    assert (small.parent / "c" / "compare.html").is_file()
