"""Hosts with several links: interfaces of Linux hosts, and links that flows name."""

from pathlib import Path

import firstlight as fl
import pytest

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
PLANES = EXPERIMENTS / "endpoint" / "two-planes.txt"
HEAD = f"""
name = "planes"
duration = "5ms"
[fabric]
kind = "graph"
file = "{PLANES}"
[hosts]
mtu = "9000B"
"""


def experiment(folder: Path, text: str) -> Path:
    file = folder / "planes.toml"
    file.write_text(HEAD + text)
    return file


def test_a_simulated_flow_takes_the_link_that_it_names(tmp_path: Path) -> None:
    flow = '[[flows]]\nfrom = "host{}"\nto = "host{}"\nsize = "1MB"\nhosts = "simulated"\n'
    result = fl.run(experiment(tmp_path, flow.format(0, 1) + flow.format(4, 5) + flow.format(6, 7)))
    sent = dict(zip(result.ports["name"], result.ports["delivered"], strict=True))
    assert 112 <= sent["tor0a->tor1a"] < 120 and 224 <= sent["tor0b->tor1b"] < 240
    assert sent["host2.nic"] == 0 and sent["host6.nic"] >= 112


@pytest.mark.parametrize(
    ("ends", "wrong"),
    [
        (("host0", "host5"), "no switches join host0 and host5: name links that they do"),
        (("host4", "host0"), "host4 and host0 are links of one host: name links of two"),
        (("host8", "host0"), "there is no host8: the fabric has host0 to host7"),
    ],
)
def test_what_has_no_way_is_refused(tmp_path: Path, ends: tuple[str, str], wrong: str) -> None:
    file = experiment(tmp_path, f'[[flows]]\nfrom = "{ends[0]}"\nto = "{ends[1]}"\n')
    with pytest.raises(fl.SpecError, match=wrong):
        fl.run(file)


def test_programs_run_on_hosts_not_on_links(tmp_path: Path) -> None:
    with pytest.raises(fl.SpecError, match="host5 is a further link of host1: write that"):
        fl.run(experiment(tmp_path, 'kind = "linux"\n[[program]]\non = "host5"\nrun = "true"\n'))


@pytest.mark.usefixtures("kernel")
def test_a_linux_host_has_an_interface_for_each_link(tmp_path: Path) -> None:
    run = "ip -4 -o addr show; ip route; ping -c 1 host1; ping -c 1 host5; ping -c 1 -W 1 -I eth0 host5; true"
    text = f'kind = "linux"\n[linux]\nipv6 = true\n[[program]]\non = "host0"\nname = "look"\nrun = "{run}"\n'
    flow = '[[flows]]\nfrom = "host4"\nto = "host5"\nhosts = "linux"\nsize = "1MB"\n'
    file = experiment(tmp_path, text + flow)
    result = fl.run(file, {"duration": "2s"})
    said = result.programs["look"]
    assert "inet 10.0.0.1/8" in said and "inet 10.2.0.1/15" in said
    assert "10.2.0.0/15 dev eth1 proto kernel scope link src 10.2.0.1" in said
    assert said.count("1 received") == 2, "the first plane does not lead to host5"
    assert result.manifest["hosts"]["frames"]["elsewhere"] == 1
    sent = dict(zip(result.ports["name"], result.ports["delivered"], strict=True))
    assert sent["tor0a->tor1a"] == 1 and sent["tor0b->tor1b"] > 112
    assert result.digest == fl.run(file, {"duration": "2s"}).digest


@pytest.mark.usefixtures("kernel")
def test_mptcp_takes_both_planes() -> None:
    said = fl.run(EXPERIMENTS / "endpoint" / "two-planes.toml").programs["receiver"]
    tcp, mptcp, loaded = [float(line.split()[-2]) for line in said.splitlines()]
    assert 9 < tcp < 10 and 17 < mptcp < 20 and 12 < loaded < mptcp
