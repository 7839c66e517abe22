"""``[[hosts.classes]]``: congestion controls in traffic classes of their own, on both kinds of hosts."""

from pathlib import Path
from typing import Any

import firstlight as fl
import pytest
from firstlight.linux.kernels import Kernel

# Hosts 1 and 2 run both controllers. A queue that drops what is not ECT starves CUBIC; two queues share.
FABRIC = """
duration = "300ms"
[fabric]
kind = "star"
hosts = 3
[hosts]
rate = "10Gbps"
delay = "5us"
[[hosts.classes]]
cc = "dctcp"
class = 1
[[hosts.classes]]
cc = "cubic"
class = 0
[[switch.classes]]
queue = "1MB"
weight = 1
[[switch.classes]]
queue = "1MB"
ecn = "100kB"
drop_non_ect = 1.0
weight = 1
[tcp]
rto_min = "5ms"
"""
BOTH = """
[[workload]]
kind = "incast"
to = "host0"
cc = "cubic"
[[workload]]
kind = "incast"
to = "host0"
cc = "dctcp"
"""
PROGRAMS = """
[linux]
hosts = [{ on = "host1", cc = "dctcp" }, { on = "host0", cc = "dctcp" }]
[[program]]
on = "host0"
run = "iperf3 -s -p 5201"
server = true
[[program]]
on = "host0"
run = "iperf3 -s -p 5202"
server = true
[[program]]
on = "host1"
run = "iperf3 -c host0 -p 5201 -t 1"
start = "10ms"
server = true # it goes on to the end
[[program]]
on = "host2"
run = "iperf3 -c host0 -p 5202 -t 1"
start = "10ms"
server = true # it goes on to the end
"""
ONE_QUEUE: dict[str, Any] = {"hosts.classes.1.class": 1}


@pytest.mark.parametrize("hosts", ["simulated", "linux"])
def test_hosts_with_two_controllers_separate_them(tmp_path: Path, kernel: Kernel, hosts: str) -> None:
    path = tmp_path / "both.toml"
    path.write_text(FABRIC + BOTH)

    def gbps(settings: dict[str, Any]) -> dict[str, float]:
        flows = fl.run(path, {"hosts.kind": hosts, **settings}).flows
        classes = flows.groupby("cc")["class"].unique().map(list).to_dict()
        assert classes == {"cubic": [settings.get("hosts.classes.1.class", 0)], "dctcp": [1]}
        return dict(flows.groupby("cc")["bytes_received"].sum() * 8e-9 / 0.3)

    apart, together = gbps({}), gbps(ONE_QUEUE)
    assert min(apart.values()) > 4.5, apart
    assert together["cubic"] < 1, together


def test_classes_of_flows_go_before_those_of_controllers(tmp_path: Path) -> None:
    path = tmp_path / "both.toml"
    path.write_text(FABRIC + BOTH)
    flows = fl.run(path, {"workload.1.class": 0, "duration": "1ms"}).flows
    assert list(flows["class"]) == [0] * 4


def test_programs_have_the_class_of_their_hosts_controller(tmp_path: Path, kernel: Kernel) -> None:
    path = tmp_path / "programs.toml"
    path.write_text(FABRIC + PROGRAMS)

    def packets(settings: dict[str, Any]) -> list[int]:
        ports = fl.run(path, {"hosts.kind": "linux", **settings}).table("ports")
        delivered = dict(zip(ports["name"], ports["delivered"], strict=True))
        return [int(delivered[f"host{host}.nic"]) for host in (1, 2)]

    dctcp, cubic = packets({})
    assert 0.8 < cubic / dctcp < 1.25
    dctcp, cubic = packets(ONE_QUEUE)
    assert cubic < dctcp / 10
