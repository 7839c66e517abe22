"""Which hosts of a plan are on which machine, and the plan's part for each."""

from dataclasses import dataclass
from typing import Any

from firstlight.errors import RunError

HostsPlan = dict[str, Any]


@dataclass(frozen=True)
class MachinePart:
    """Hosts and programs of one machine, by their places in the whole plan."""

    hosts: list[int]
    programs: list[int]

    def plan(self, whole: HostsPlan) -> HostsPlan:
        """The machine's own plan. The engine waits for all parts, so that each ends when it has no more to
        do, unless nothing at all is waited for."""
        place = {host: index for index, host in enumerate(self.hosts)}
        waits = whole["flows"] or whole["messages"] or any(not p["server"] for p in whole["programs"])
        flows = [
            {**flow, "from": place[flow["from"]], "to": place[flow["to"]]}
            for flow in whole["flows"]
            if flow["from"] in place and flow["to"] in place
        ]
        return {
            **whole,
            "hosts": [whole["hosts"][host] for host in self.hosts],
            "flows": flows,
            "messages": whole["messages"] if flows else [],
            "programs": [
                {**program, "on": place[program["on"]]}
                for program in (whole["programs"][index] for index in self.programs)
            ],
            "ends_early": bool(whole["ends_early"] and waits),
            **({} if flows else {"tcp_info": None, "throughput_ps": None}),
        }


def divided(plan: HostsPlan, wanted: dict[str, list[str]]) -> tuple[MachinePart, dict[str, MachinePart]]:
    """The part of this machine, and those of others by name. ``wanted`` has names of hosts or racks."""
    where: dict[int, str] = {}
    for machine, hosts in wanted.items():
        for text in hosts:
            found = [i for i, host in enumerate(plan["hosts"]) if is_called(host["names"], text)]
            if not found:
                known = ", ".join(host["names"][-1] for host in plan["hosts"][:8])
                raise RunError(
                    f"machine {machine}: '{text}' is no host or rack that takes part in this experiment: "
                    f"there are {known}{', ...' if len(plan['hosts']) > 8 else ''}"
                )
            for host in found:
                if where.setdefault(host, machine) != machine:
                    name = plan["hosts"][host]["names"][0]
                    raise RunError(f"{name} is on machine {where[host]} and on {machine}: name one of them")
    for flow in plan["flows"]:
        for host in (flow["from"], flow["to"]):
            if host in where:
                raise RunError(
                    f"flow {flow['flow']} has an end on {plan['hosts'][host]['names'][0]}, which is on "
                    f"machine {where[host]}: flows are between hosts of the engine's machine; let a program "
                    "carry it (iperf3), or keep the host here"
                )
    everybody = range(len(plan["hosts"]))

    def part(machine: str | None) -> MachinePart:
        hosts = [host for host in everybody if where.get(host) == machine]
        programs = [i for i, program in enumerate(plan["programs"]) if program["on"] in hosts]
        return MachinePart(hosts, programs)

    return part(None), {machine: part(machine) for machine in wanted}


def is_called(names: list[str], text: str) -> bool:
    """Whether ``text`` is a name of the host, or of the rack in it."""
    return any(name == text or name.startswith(f"{text}.") for name in names)
