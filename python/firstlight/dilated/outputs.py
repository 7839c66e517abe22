"""The transfer of programs' files from a machine that has joined to the engine's machine."""

from pathlib import Path

from firstlight.dilated.link import Link, LinkError
from firstlight.linux.directory import OUTPUT_MB

PIECE = 1 << 20
MOST_FILES = 10_000


def send(link: Link, files: dict[str, bytes]) -> None:
    """Send all files in pieces."""
    link.send({"done": [[name, len(content)] for name, content in files.items()]})
    for content in files.values():
        for start in range(0, len(content), PIECE):
            link.send(content[start : start + PIECE])


def receive(link: Link, sizes: object, programs: int) -> dict[str, bytes]:
    """The files whose names and ``sizes`` the other side has said."""
    names = checked(sizes, programs)
    found = {}
    for name, size in names.items():
        parts, left = [], size
        while left:
            parts.append(link.receive())
            left -= len(parts[-1])
            if left < 0 or not parts[-1]:
                raise LinkError(f"the output {name} does not have the announced size")
        found[name] = b"".join(parts)
    return found


def checked(sizes: object, programs: int) -> dict[str, int]:
    """Names and sizes, if they are those of files that ``programs`` programs may leave."""
    if not isinstance(sizes, list) or len(sizes) > MOST_FILES:
        raise LinkError("the list of outputs is not as expected")
    names: dict[str, int] = {}
    for entry in sizes:
        match entry:
            case [str(name), int(size)] if (
                name == Path(name).name and name not in ("", ".", "..") and size >= 0
            ):
                names[name] = size
            case _:
                raise LinkError(f"an output is not as expected: {entry!r:.100}")
    if sum(names.values()) > programs * OUTPUT_MB << 20:
        raise LinkError(f"programs there left more than {OUTPUT_MB} MiB each")
    return names
