"""What the tidy checks know about the source tree: its files, its layers, who includes what."""

import re
from pathlib import Path, PurePosixPath
from typing import Iterator, NamedTuple, Optional

# Which layers each layer may include besides itself; src/CMakeLists.txt draws the graph.
LAYERS = {
    "base": set(),
    "fabric": {"base"},
    "pool": {"base", "fabric"},
    "index": {"base", "fabric", "pool"},
    "store": {"base", "fabric", "pool", "index"},
    "workload": {"base"},
    "check": {"base", "fabric", "pool", "index", "store"},
    "tools": {"base", "fabric", "pool", "index", "store", "workload", "check"},
}

# Public headers that belong to the lowest layer; all others belong to `store`.
PUBLIC_BASE_HEADERS = {"range.h", "record.h", "result.h", "run_tasks.h", "task.h"}

CODE_FOLDERS = ["include", "src", "tools", "tests", "bench", "examples"]

# Where the compiler looks for an include.
INCLUDE_ROOTS = ["include", "src", "."]

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


class Module(NamedTuple):
    """Where a file stands: its layer, and the part of the layer that is a target of its own.

    The part is "" for the core of a layer, else a backend ("sim"), an engine ("chime",
    "baseline/race"), or the helpers they share ("memory" in fabric, "kit" in index).
    """

    layer: str
    part: str


def module_of(path: PurePosixPath) -> Optional[Module]:
    """The module of a file, given relative to the top; None for tests and other code outside the layers."""
    parts = path.parts
    if parts[:2] == ("include", "farside"):
        return Module("base" if "/".join(parts[2:]) in PUBLIC_BASE_HEADERS else "store", "")
    if parts[0] == "tools":
        return Module("tools", "")
    if parts[0] != "src" or len(parts) < 3 or parts[1] not in LAYERS:
        return None
    layer, folders = parts[1], parts[2:-1]
    if layer not in ("fabric", "index") or not folders:
        return Module(layer, "")
    if layer == "index" and folders[0] == "baseline" and len(folders) > 1:
        return Module(layer, f"baseline/{folders[1]}")
    return Module(layer, folders[0])


def code_files(top: Path) -> Iterator[PurePosixPath]:
    """All C++ files, relative to the top."""
    for folder in CODE_FOLDERS:
        for path in sorted((top / folder).rglob("*")):
            if path.suffix in (".h", ".cc") and path.is_file():
                yield PurePosixPath(path.relative_to(top).as_posix())


def read(top: Path, path: PurePosixPath) -> str:
    return (top / path).read_text(encoding="utf-8", errors="replace")


class Include(NamedTuple):
    line: int
    name: str
    quoted: bool  # with quotes, not angle brackets


def includes(text: str) -> Iterator[Include]:
    for number, line in enumerate(text.splitlines(), start=1):
        if match := INCLUDE.match(line):
            yield Include(number, match.group(2), match.group(1) == '"')


def normalized(path: PurePosixPath) -> PurePosixPath:
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return PurePosixPath(*parts)


def resolve(top: Path, includer: PurePosixPath, include: Include) -> Optional[PurePosixPath]:
    """The file of ours that an include means, as the compiler would find it; None if there is none."""
    roots = [PurePosixPath(root) for root in INCLUDE_ROOTS]
    for root in [includer.parent, *roots] if include.quoted else roots:
        candidate = normalized(root / include.name)
        if (top / candidate).is_file():
            return candidate
    return None
