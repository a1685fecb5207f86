#!/usr/bin/env python3
"""Counts the instructions of operations through the public API on an embedded pool, with callgrind.

usage: instructions.py BINARY [--engine NAME ...] [--json]

BINARY is farside_instructions. For each engine and operation it prints, per operation: instructions, coroutine frames,
and allocations on the heap. A MultiGet has 64 keys and counts as one operation. Everything is averaged over some
thousand operations in a steady state: 10,000 records with keys of 16 and values of 64 bytes, caches warm.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Iterator, NamedTuple

# As in main.cc: operations of a round, by the function that callgrind collects. The first round is the warm-up.
ROUNDS = 4
OPERATIONS = {"MeasuredGets": 1000, "MeasuredPuts": 1000, "MeasuredMultiGets": 50}
NAMES = {"MeasuredGets": "Get", "MeasuredPuts": "Put", "MeasuredMultiGets": "MultiGet"}

FRAME = "farside::FrameCache::Allocate("
HEAP = "operator new("


class Dump(NamedTuple):
    """One file of callgrind: what one call of a measured function cost."""

    function: str
    instructions: int
    calls: Counter  # by the function that was called


def parse(text: str) -> Dump:
    function, instructions, called, calls = "", 0, "", Counter()
    for line in text.splitlines():
        if line.startswith("desc: Trigger: --dump-after="):
            function = line.rpartition("=")[2]
        elif line.startswith("totals: "):
            instructions = int(line.split()[1])
        elif line.startswith("cfn="):
            called = line[4:]
        elif line.startswith("calls="):
            calls[called] += int(line[6:].split()[0])
    return Dump(function, instructions, calls)


def dumps(binary: Path, engine: str) -> Iterator[Dump]:
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--quiet", "--compress-strings=no", "--compress-pos=no",
                   f"--callgrind-out-file={folder}/out"]
        for function in OPERATIONS:
            command += [f"--toggle-collect={function}", f"--dump-after={function}"]
        subprocess.run([*command, str(binary), engine], check=True)
        files = [file for file in Path(folder).iterdir() if file.suffix[1:].isdigit()]
        for file in sorted(files, key=lambda path: int(path.suffix[1:])):
            yield parse(file.read_text())


def calls_of(dump: Dump, prefix: str) -> int:
    return sum(count for name, count in dump.calls.items() if name.startswith(prefix))


def measure(binary: Path, engine: str) -> Iterator[dict]:
    found = [dump for dump in dumps(binary, engine) if dump.function]
    for function, operations in OPERATIONS.items():
        rounds = [dump for dump in found if dump.function == function][1:]
        if len(rounds) != ROUNDS:
            sys.exit(f"instructions: {len(rounds)} rounds of {function} instead of {ROUNDS}; is {binary} up to date?")
        count = ROUNDS * operations
        yield {"engine": engine, "operation": NAMES[function],
               "instructions": round(sum(dump.instructions for dump in rounds) / count),
               "frames": round(sum(calls_of(dump, FRAME) for dump in rounds) / count, 2),
               "allocations": round(sum(calls_of(dump, HEAP) for dump in rounds) / count, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Instructions of operations, by callgrind.")
    parser.add_argument("binary", type=Path, help="farside_instructions")
    parser.add_argument("--engine", action="append", help="this engine; may be repeated (shard and chime)")
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    arguments = parser.parse_args()
    rows = [row for engine in arguments.engine or ["shard", "chime"] for row in measure(arguments.binary, engine)]
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'engine':<10}{'operation':<12}{'instructions':>12}{'frames':>10}{'allocations':>13}")
    for row in rows:
        print(f"{row['engine']:<10}{row['operation']:<12}{row['instructions']:>12,}{row['frames']:>10}"
              f"{row['allocations']:>13}")


if __name__ == "__main__":
    main()
