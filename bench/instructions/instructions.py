#!/usr/bin/env python3
"""Counts the instructions of operations through the public API on an embedded pool, with callgrind.

usage: instructions.py BINARY [--engine NAME ...] [--frames] [--json]

BINARY is farside_instructions. For each engine and operation it prints, per operation: instructions,
coroutine frames, and allocations on the heap; with --frames also which coroutines the frames belong to. A
MultiGet has 64 keys and counts as one operation. Everything is averaged over some thousand operations in a
steady state: 10,000 records with keys of 16 and values of 64 bytes, caches warm.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Iterator, NamedTuple

# As in main.cc: operations of a round, by the function that is measured. The first round is the warm-up.
ROUNDS = 4
OPERATIONS = {"MeasuredGets": 1000, "MeasuredPuts": 1000, "MeasuredMultiGets": 50}
NAMES = {"MeasuredGets": "Get", "MeasuredPuts": "Put", "MeasuredMultiGets": "MultiGet"}

FRAME = "farside::FrameCache::Allocate("
HEAP = "operator new("
SHOWN_FRAMES = 0.01  # per operation


class Dump(NamedTuple):
    """One file of callgrind: what one call of a measured function cost, or what lay between two of them."""

    function: str  # empty: between
    instructions: int
    frames: Counter  # by the coroutine
    allocations: int


def parse(text: str) -> Dump:
    measured, instructions, caller, called, frames, allocations = "", 0, "", "", Counter(), 0
    for line in text.splitlines():
        if line.startswith("desc: Trigger: --dump-after="):
            measured = line.rpartition("=")[2]
        elif line.startswith("totals: "):
            instructions = int(line.split()[1])
        elif line.startswith("fn="):
            caller = line[3:]
        elif line.startswith("cfn="):
            called = line[4:]
        elif line.startswith("calls="):
            count = int(line[6:].split()[0])
            if called.startswith(FRAME):
                frames[caller.replace("(anonymous namespace)::", "").partition("(")[0]] += count
            elif called.startswith(HEAP):
                allocations += count
    return Dump(measured, instructions, frames, allocations)


def dumps(binary: Path, engine: str) -> Iterator[Dump]:
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--quiet", "--compress-strings=no", "--compress-pos=no",
                   f"--callgrind-out-file={folder}/out"]
        for function in OPERATIONS:
            command += [f"--dump-before={function}", f"--dump-after={function}"]
        subprocess.run([*command, str(binary), engine], check=True)
        files = [file for file in Path(folder).iterdir() if file.suffix[1:].isdigit()]
        for file in sorted(files, key=lambda path: int(path.suffix[1:])):
            yield parse(file.read_text())


def measure(binary: Path, engine: str) -> Iterator[dict]:
    found = [dump for dump in dumps(binary, engine) if dump.function]
    for function, operations in OPERATIONS.items():
        rounds = [dump for dump in found if dump.function == function][1:]
        if len(rounds) != ROUNDS:
            sys.exit(f"instructions: {len(rounds)} rounds of {function} instead of {ROUNDS}; "
                     f"is {binary} up to date?")
        count = ROUNDS * operations
        frames = sum((dump.frames for dump in rounds), Counter())
        yield {"engine": engine, "operation": NAMES[function],
               "instructions": round(sum(dump.instructions for dump in rounds) / count),
               "frames": round(frames.total() / count, 2),
               "allocations": round(sum(dump.allocations for dump in rounds) / count, 2),
               "coroutines": {name: round(calls / count, 3) for name, calls in frames.most_common()}}


def main() -> None:
    parser = argparse.ArgumentParser(description="Instructions of operations, by callgrind.")
    parser.add_argument("binary", type=Path, help="farside_instructions")
    parser.add_argument("--engine", action="append", help="this engine; may be repeated (shard and chime)")
    parser.add_argument("--frames", action="store_true", help="also the coroutines that the frames belong to")
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    arguments = parser.parse_args()
    engines = arguments.engine or ["shard", "chime"]
    rows = [row for engine in engines for row in measure(arguments.binary, engine)]
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'engine':<10}{'operation':<12}{'instructions':>12}{'frames':>10}{'allocations':>13}")
    for row in rows:
        print(f"{row['engine']:<10}{row['operation']:<12}{row['instructions']:>12,}{row['frames']:>10}"
              f"{row['allocations']:>13}")
        for name, frames in row["coroutines"].items() if arguments.frames else []:
            if frames >= SHOWN_FRAMES:
                print(f"{'':<10}{frames:>8}  {name}")


if __name__ == "__main__":
    main()
