#!/usr/bin/env python3
"""Checks rules of the source tree that a compiler does not know. Prints one line per finding.

usage: tidy.py TOP
"""

import re
import sys
from pathlib import Path, PurePosixPath
from typing import Iterator

from source_tree import LAYERS, Module, code_files, includes, module_of, read, resolve

# Parts of a layer that its other parts may use.
SHARED_PARTS = {"fabric": "memory", "index": "kit"}
PART_IS_CALLED = {"fabric": "backend", "index": "engine"}

MUTANT_HEADER = PurePosixPath("src/base/mutant.h")

TEXT_SUFFIXES = {".h", ".cc", ".md", ".py", ".sh", ".txt", ".cmake", ".in", ".json", ""}
SKIPPED_FOLDERS = {".git", ".cache", "build"}

# Spelled so that this file does not match itself.
FORBIDDEN = [
    (re.compile(r"(?<![\w.$}])/(?:home|wor[k])/\w"), "an absolute path of one machine"),
    (re.compile(r"\b(?:TOD[O]|FIXM[E])\b(?!\s*(?:\([^)]*\))?\s*:?\s*\w+(?:\W+\w+){2})"),
     "a marker for later without an explanation"),
]


def include_findings(top: Path, path: PurePosixPath, text: str) -> Iterator[str]:
    here = module_of(path)
    for include in includes(text):
        found = resolve(top, path, include)
        if not found and not include.quoted:
            continue  # <vector>, <fmt/format.h>
        where = f"{path}:{include.line}: {include.name}"
        if include.name.startswith(("src/", "include/")):
            yield f'{where}: name it from src/ or include/ on, as in "fabric/verb.h"'
            continue
        if path.parts[0] == "include" and (not found or found.parts[0] != "include"):
            yield f"{where}: an installed header may include only installed headers"
            continue
        # A file that does not exist is the compiler's business, unless its name tells the layer.
        there = module_of(found or PurePosixPath("src", include.name))
        problem = order_problem(here, there) if here and there else ""
        if problem:
            yield f"{where}: {problem}"


def order_problem(here: Module, there: Module) -> str:
    """Why code at `here` must not include code at `there`; empty if it may."""
    if there.layer != here.layer:
        return "" if there.layer in LAYERS[here.layer] else f"{here.layer} must not know the layer {there.layer}"
    if there.part in ("", here.part):
        return ""
    shared = SHARED_PARTS.get(here.layer)
    called = PART_IS_CALLED.get(here.layer, "part")
    if here.part == "":
        # index/*.cc and index/kit are one target; in fabric the core stands below all parts.
        if there.part == "kit" and here.layer == "index":
            return ""
        return f"the core of {here.layer} must not know one of its parts ({there.part})"
    if there.part == shared:
        return ""
    return f"{here.part} must not know another {called} ({there.part})"


def header_findings(path: PurePosixPath, text: str) -> Iterator[str]:
    if path.suffix != ".h":
        return
    if not re.search(r"^#pragma once$", text, re.MULTILINE):
        yield f"{path}:1: a header needs #pragma once"
    # Engines are compiled twice, without and with mutants. Code in a header that asks for a mutant would
    # have two bodies under one name.
    if path != MUTANT_HEADER:
        for number, line in enumerate(text.splitlines(), start=1):
            if re.search(r"\bMutant\(", line.split("//")[0]):
                yield f"{path}:{number}: call Mutant() in .cc files only"


# A subscript, or what at() is given, as far as it is open; then a number made of a node.
NODE_AS_INDEX = re.compile(
    r"(?:(?<=[\w)\]])\[(?:[^\[\]]|\[[^\[\]]*\])*?"
    r"|(?:\.|->)at\((?:[^()]|\([^()]*\)|\()*?)"
    r"\b(?:Index\(|node\(\))")


def node_findings(path: PurePosixPath, text: str) -> Iterator[str]:
    """A node number may come from far memory. Below, in the fabrics, it has been checked."""
    if path.parts[0] not in ("src", "tools") or path.parts[:2] == ("src", "fabric"):
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if NODE_AS_INDEX.search(line.split("//")[0]):
            yield f"{path}:{number}: a node is no index; ask fabric::ForNode"


def mutant_findings(top: Path) -> Iterator[str]:
    """Planted bugs that no test switches on, by their name or through the list of their header."""
    tests = [read(top, path) for path in code_files(top)
             if path.parts[0] == "tests" and path.name.endswith("mutants_test.cc")]
    for path in code_files(top):
        if path.name != "mutants.h":
            continue
        text = read(top, path)
        listed = re.search(r"kAllMutants = \{([^}]*)\}", text)
        header = "/".join(path.parts[1:])
        goes_through = any(f'"{header}"' in test and "kAllMutants" in test for test in tests)
        for number, line in enumerate(text.splitlines(), 1):
            declared = re.search(r"\bMutantName (k\w+)\{", line)
            if not declared:
                continue
            name = re.compile(rf"\b{declared[1]}\b")
            if goes_through and listed and name.search(listed[1]):
                continue
            if not any(name.search(test) for test in tests):
                yield f"{path}:{number}: no *mutants_test.cc catches {declared[1]}"


def text_files(top: Path) -> Iterator[PurePosixPath]:
    for path in sorted(top.rglob("*")):
        relative = path.relative_to(top)
        if relative.parts[0] in SKIPPED_FOLDERS or path.suffix not in TEXT_SUFFIXES or not path.is_file():
            continue
        yield PurePosixPath(relative.as_posix())


def word_findings(top: Path) -> Iterator[str]:
    for path in text_files(top):
        for number, line in enumerate(read(top, path).splitlines(), start=1):
            for pattern, what in FORBIDDEN:
                if match := pattern.search(line):
                    yield f"{path}:{number}: {what}: {match.group(0)}"


def findings(top: Path) -> Iterator[str]:
    for path in code_files(top):
        text = read(top, path)
        yield from header_findings(path, text)
        yield from include_findings(top, path, text)
        yield from node_findings(path, text)
    yield from mutant_findings(top)
    yield from word_findings(top)


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    top = Path(sys.argv[1])
    if not any(True for _ in code_files(top)):
        print(f"tidy: no C++ files below {top}; is that the top of the source tree?", file=sys.stderr)
        return 2
    found = list(findings(top))
    print("\n".join(found) if found else "tidy: nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
