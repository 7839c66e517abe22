"""Programs that write to the network, for the demand that a control loop sees."""

from pathlib import Path

import firstlight as fl
import pandas as pd

MSS = 8948
PROGRAMS = """
[[program]]
on = "rack1.host0"
name = "sink1"
server = true
run = "python3 {folder}/sink.py"
[[program]]
on = "rack0.host1"
name = "sink0"
server = true
run = "python3 {folder}/sink.py"
[[program]]
on = "host0"
name = "blocked"
run = "python3 {folder}/blocked.py"
server = {serves}
[[program]]
on = "rack2.host3"
name = "partial"
run = "python3 {folder}/partial.py"
"""
SINK = """
import socket
listener = socket.create_server(("", 7000))
connection, _ = listener.accept()
while connection.recv(1 << 20): pass
"""
WRITER = """
import socket, struct, time
begun = time.monotonic()
def at(ms): time.sleep(begun + ms * {slow} / 1000 - time.monotonic())
connection = socket.create_connection(("{to}", 7000))
at(1.5)
"""
BLOCKED = "connection.sendall(bytes(4_000_000))\nat(8.8)\n"
PARTIAL = """
connection.setblocking(False)
print(connection.send(bytes(50_000_000)))
at(2.5)
connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
connection.close()
"""
STAYS = "at(8.8)\n"


def writers(folder: Path, *, slow: int = 1, stay: bool) -> str:
    """The programs' tables; their code is written into ``folder``.

    After 1.5 ms times ``slow`` one program writes 4 MB at once, and blocks; another offers 50 MB, of which
    what fits is taken, and gives its connection up at 2.5 ms. They ``stay`` beyond the end of a run of 9 ms,
    or end by themselves.
    """
    for name, code in {
        "sink": SINK,
        "blocked": WRITER.format(slow=slow, to="rack1.host0") + BLOCKED,
        "partial": WRITER.format(slow=slow, to="rack0.host1") + PARTIAL + (STAYS if stay else ""),
    }.items():
        (folder / f"{name}.py").write_text(code)
    return PROGRAMS.format(folder=folder, serves=str(stay).lower())


def demand(result: fl.Result) -> pd.Series:
    """Demand in bytes by week, sending and receiving rack."""
    key = ["week", "src", "dst"]
    return result.table("circuits").drop_duplicates(key).set_index(key)["demand_bytes"]
