"""This machine as one that joins a run: its hosts and their programs run here, the fabric elsewhere."""

import contextlib
import json
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from firstlight import core
from firstlight.dilated import controls, outputs
from firstlight.dilated import run as dilated
from firstlight.dilated.link import Gone, Link, LinkError, address_of, token_of
from firstlight.errors import RunError
from firstlight.linux import guest, installed
from firstlight.linux.directory import RunDirectory

LOOK_S = 0.05
AGAIN_S = 0.3
"""How soon an engine that does not listen yet is tried again."""
Say = Callable[[str], None]


def serve(address: str, token: Path, name: str, say: Say, *, once: bool = False) -> None:
    """Join the runs at ``address`` one after another until something ends this; one run with ``once``."""
    target, secret = address_of(address), token_of(token)
    say(f"machine {name}: waiting for a run at {address}")
    while True:
        with dilated.alone():
            link = connected(target, address, secret)
            try:
                if take_part(link, address, name, say) and once:
                    return
            finally:
                link.close()


def connected(target: tuple[str, int], address: str, secret: bytes) -> Link:
    """The connection to an engine, as soon as one listens."""
    while True:
        try:
            connection = socket.create_connection(target, timeout=5)
        except socket.gaierror as e:
            raise RunError(f"{address}: {e.strerror}") from None
        except OSError:
            time.sleep(AGAIN_S)
            continue
        try:
            return Link(connection, secret, engine=False)
        except Gone:
            # One that is about to end, or that has too many at its door.
            connection.close()
            time.sleep(AGAIN_S)
        except LinkError as e:
            connection.close()
            raise RunError(f"{address}: {e}") from None


def take_part(link: Link, address: str, name: str, say: Say) -> bool:
    """Take part in one run; False when there was none after all."""
    try:
        link.send({"name": name, "version": core.version()})
        answer = link.receive_json()
    except Gone:
        raise RunError(
            f"{address} closed the connection: its token is another one, or its run has ended; "
            "use the same file on both sides"
        ) from None
    except LinkError as e:
        raise RunError(f"{address}: {e}") from None
    if "refused" in answer:
        raise RunError(f"{address} refused machine {name}: {str(answer['refused'])[:1000]}")
    say(f"joined {address} as {name}")
    try:
        order = link.receive_json(None)["run"]
        plan = link.receive_json()
        arguments = int(order["machine"]), int(order["factor"])
    except Gone:
        say("the run ended before it began")
        return False
    except (LinkError, KeyError, TypeError, ValueError) as e:
        raise RunError(f"{address}: it sent an order that this version does not understand: {e}") from None
    try:
        files = carry_out(link, plan, *arguments)
        outputs.send(link, files)
        say("the run is over")
    except Gone:
        say("the run was ended there")
    except RunError as e:
        say(f"the run failed: {e}")
        with contextlib.suppress(LinkError):
            link.send({"failed": str(e)})
    return True


def carry_out(link: Link, plan: dict[str, Any], machine: int, factor: int) -> dict[str, bytes]:
    """Run this machine's hosts to the end. Return the files that their programs wrote."""
    host, port = link.peer
    order: dict[str, Any] = {
        "engine": f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
        "machine": machine,
        "keys": link.datagram_keys,
        "factor": factor,
        "guest": str(installed.guest()),
    }
    with RunDirectory(dilated.MEMORY_MB) as run, controls.ready(plan):
        run.write("part.json", json.dumps(plan))
        order["libvt"] = str(run.link("libvt.so", installed.libvt()))
        run.write("join.json", json.dumps(order))
        with dilated.started(run) as process:
            watch(link, process, run, plan)
        if failure := run.json("failure.json"):
            raise RunError(str(failure.get("error", failure)))
        if process.returncode:
            lines = run.console().strip().splitlines()
            raise RunError(lines[-1] if lines else guest.early_end(process, run, plan["duration"]))
        return run.outputs()


def watch(link: Link, process: "subprocess.Popen[bytes]", run: RunDirectory, plan: dict[str, Any]) -> None:
    """Wait until this machine's engine has ended; raise :class:`Gone` when the run has ended elsewhere."""
    while process.poll() is None:
        run.check_outputs(plan)
        if link.has_news(LOOK_S):
            raise Gone("it closed the connection")
