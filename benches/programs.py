"""What real programs cost on Linux hosts, beside a flow of the experiment's own.

A star of two hosts with links of 10 Gb/s and 5 us. Each program runs twice, with little and with much to do.
What is reported is the difference: CPU time of the kernel's process and of all that runs in it, by virtual
time and by the packets (data and ACKs alike) that reached their hosts. Programs that are not installed are
left out.
"""

import json
import resource
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import linux_hosts

FABRIC = """
name = "program"
duration = "20s"
[fabric]
kind = "star"
hosts = 2
[hosts]
kind = "linux"
rate = "10Gbps"
delay = "5us"
"""
SERVED = """
[[program]]
name = "server"
on = "host1"
server = true
run = '''{server}'''
[[program]]
name = "client"
on = "host0"
start = "100ms"
run = "{client}"
"""
FLOW = """
[[flows]]
from = "host0"
to = "host1"
size = "{amount}B"
"""
PROFILE = '[linux.cpu]\nprofile = "xeon-e5-2430"\n'
NGINX = """
mkdir -p root; head -c 10000 /dev/zero > root/zeros
echo "daemon off; user root; pid nginx.pid; error_log stderr; events {} http { access_log off;
server { listen 80; root $PWD/root; keepalive_requests 1000000; } }" > nginx.conf
exec nginx -p $PWD -c nginx.conf"""
REDIS = "redis-server --protected-mode no --save '' --dir ."
REQUESTS = "redis-benchmark -h host1 -c 10 -n {amount} -t get -q"
DATA = "iperf3 -c host1 -n {amount}"


@dataclass(frozen=True)
class Case:
    """A program, with how much it has to do in the short and in the long run."""

    name: str
    amounts: tuple[int, int]
    mtu: int = 1500
    server: str = ""
    client: str = ""
    more: str = ""

    @property
    def missing(self) -> bool:
        """Whether a program is not installed."""
        last = self.server.rpartition("exec ")[2]
        return any(shutil.which(command.split()[0]) is None for command in (last, self.client) if command)

    def text(self, amount: int) -> str:
        """The experiment. Its client has nothing to do where ``amount`` is 0."""
        work = SERVED if self.client else FLOW
        client = self.client.format(amount=amount) if amount else "true"
        table = f'mtu = "{self.mtu}B"\n{self.more}'
        return FABRIC + table + work.format(server=self.server, client=client, amount=amount)


CASES = (
    Case("built-in flow", (100_000_000, 1_100_000_000)),
    Case("iperf3", (25_000_000, 225_000_000), server="iperf3 -s", client=DATA),
    Case("iperf3, profile", (25_000_000, 525_000_000), server="iperf3 -s", client=DATA, more=PROFILE),
    Case("iperf3, MTU 9000", (100_000_000, 700_000_000), mtu=9000, server="iperf3 -s", client=DATA),
    Case("wrk -c4, nginx", (0, 1), server=NGINX, client="wrk -t1 -c4 -d{amount}s http://host1/zeros"),
    Case("redis, 10 clients", (2000, 22_000), server=REDIS, client=REQUESTS),
)


def run_once(text: str) -> dict[str, float]:
    """One run in this process's children: their CPU time, virtual time and packets."""
    import firstlight

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "program.toml"
        file.write_text(text)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        manifest = firstlight.run(file).manifest
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # On a star each packet is transmitted twice.
    return {
        "cpu_s": cpu,
        "virtual_s": manifest["elapsed_us"] / 1e6,
        "packets": manifest["counts"]["packet_hops"] / 2,
    }


def sample(text: str) -> dict[str, float]:
    """One run in a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), text]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def measure(repeats: int) -> dict[str, dict[str, float]]:
    """The figures of each case that can be measured."""
    if linux_hosts.state():
        return {}
    found: dict[str, dict[str, float]] = {}
    for case in CASES:
        if case.missing:
            continue
        short, long = ([sample(case.text(amount)) for _ in range(repeats)] for amount in case.amounts)
        cpu = median(run["cpu_s"] for run in long) - median(run["cpu_s"] for run in short)
        seconds, packets = (long[0][key] - short[0][key] for key in ("virtual_s", "packets"))
        found[case.name] = {
            "cpu_s_per_virtual_second": cpu / seconds,
            "cpu_us_per_packet": 1e6 * cpu / packets,
        }
    return found


def render(figures: dict[str, dict[str, float]]) -> list[str]:
    """The figures as lines of text."""
    lines = [
        f"  {name:18} {cost['cpu_s_per_virtual_second']:6.2f} s per virtual second, "
        f"{cost['cpu_us_per_packet']:6.2f} us per packet"
        for name, cost in figures.items()
    ]
    left_out = [case.name for case in CASES if case.name not in figures]
    return [
        "Programs on Linux hosts: CPU time of one core",
        *lines,
        *(f"  not measured: {name}" for name in left_out),
    ]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(run_once(sys.argv[1])))
    else:
        print("\n".join(render(measure(1))))
