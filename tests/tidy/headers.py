#!/usr/bin/env python3
"""Checks that every header compiles alone: it includes all that it uses.

usage: headers.py TOP CACHE [COMPILER...]

The precompiled header of the build hides a missing standard header; here there is none. COMPILER may begin
with a launcher such as ccache. Headers that depend on FARSIDE_MUTANTS are compiled without and with it. CACHE
is a folder that remembers what compiled; a header is compiled again when a file it depends on is newer.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

from source_tree import INCLUDE_ROOTS, code_files, includes, read, resolve

MUTANTS = "FARSIDE_MUTANTS"
FLAGS = ["-std=c++20", "-O0", "-c"]  # -c, not -fsyntax-only: ccache stores objects alone


def mentions_mutants(top: Path, header: PurePosixPath) -> bool:
    """Whether the header, or one that it includes, asks for FARSIDE_MUTANTS."""
    seen, todo = {header}, [header]
    while todo:
        path = todo.pop()
        text = read(top, path)
        if MUTANTS in text:
            return True
        for include in includes(text):
            found = resolve(top, path, include)
            if found and found not in seen:
                seen.add(found)
                todo.append(found)
    return False


def is_fresh(stamp: Path, depfile: Path) -> bool:
    """Whether the header compiled before, and nothing that it depends on has changed since."""
    try:
        checked = stamp.stat().st_mtime_ns
        dependencies = re.sub(r"^\S+:|\\\n", " ", depfile.read_text()).split()
        return bool(dependencies) and all(os.stat(d).st_mtime_ns < checked for d in dependencies)
    except OSError:
        return False


def compile_alone(top: Path, cache: Path, compiler: list[str], header: PurePosixPath, definitions: list[str]) -> str:
    """The compiler's complaints; empty if there are none."""
    key = str(cache / ("_".join([*header.parts, *definitions])))
    stamp, depfile, source, object_file = (Path(key + suffix) for suffix in (".ok", ".d", ".cc", ".o"))
    if is_fresh(stamp, depfile):
        return ""
    stamp.unlink(missing_ok=True)
    name = header.relative_to(next(root for root in INCLUDE_ROOTS if header.is_relative_to(root)))
    source.write_text(f'#include "{name}"\n')  # relative, so that another clone compiles the same text
    start = source.stat().st_mtime_ns  # a header edited while it is compiled counts as newer
    command = [*compiler, *FLAGS, *(f"-I{top / root}" for root in INCLUDE_ROOTS),
               *(f"-D{d}" for d in definitions), "-MD", "-MF", str(depfile), "-MT", "header",
               str(source), "-o", str(object_file)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    object_file.unlink(missing_ok=True)
    if run.returncode != 0:
        note = f" (with {' '.join(definitions)})" if definitions else ""
        return f"{header} does not compile alone{note}:\n{run.stderr}"
    stamp.touch()
    os.utime(stamp, ns=(start + 1, start + 1))
    return ""


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    top, cache = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    compiler = sys.argv[3:] or ["c++"]
    cache.mkdir(parents=True, exist_ok=True)

    jobs: list[tuple[PurePosixPath, list[str]]] = []
    for path in code_files(top):
        if path.suffix == ".h" and path.parts[0] in ("include", "src", "tools"):
            jobs.append((path, []))
            if mentions_mutants(top, path):
                jobs.append((path, [f"{MUTANTS}=1"]))
    if not jobs:
        print(f"headers: no headers below {top}; is that the top of the source tree?", file=sys.stderr)
        return 2

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = [c for c in pool.map(lambda job: compile_alone(top, cache, compiler, *job), jobs) if c]
    print("\n".join(complaints) if complaints else f"headers: all {len(jobs)} compile alone")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
