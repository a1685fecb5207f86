#!/usr/bin/env python3
"""Keeps ledger.json, figures that do not depend on the machine, and the tables of docs/ that come from it.

usage: ledger.py check [--program PROGRAM]
       ledger.py update --program PROGRAM --reason TEXT
       ledger.py pages

check   fails if a figure was changed without a reason, or if a page of docs/ shows another figure than the
        ledger; with PROGRAM, which measures, also if a figure is not what it was any more.
update  writes down figures that have moved, with the reason, and the pages that show them.
pages   writes the pages anew.

A figure has moved if it differs by more than 1 % from the ledger's, in either direction. Figures that have
not moved stay as they are written, also by an update: many small steps do not pass unnoticed.
"""

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, Optional

import pages

TOP = Path(__file__).resolve().parents[2]
LEDGER = Path(__file__).resolve().parent / "ledger.json"
COMMAND = './dev ledger --update --reason "what has changed, and why"'

LIMIT = 0.01
# A verb that one operation in a thousand needs may come twice as often: no reader of the ledger wants to
# know.
SMALLEST_COUNT = 0.005
SMALLEST_BYTES = 0.5
FEWEST_WORDS = 3


class Drift(NamedTuple):
    name: str
    old: Optional[float]  # None: the ledger does not have it
    new: Optional[float]  # None: nothing measures it any more

    def __str__(self) -> str:
        if self.old is None:
            return f"{self.name}: new, {self.new}"
        if self.new is None:
            return f"{self.name}: gone, was {self.old}"
        return f"{self.name}: {self.old} -> {self.new} ({self.share():+.1%})"

    def share(self) -> float:
        return (self.new or 0) / self.old - 1 if self.old else float("inf")


def smallest(name: str) -> float:
    """What a figure of this name may differ by, however small it is."""
    what = name.split(" | ")[-1]
    if what == "operations/s":
        return 0
    return SMALLEST_BYTES if what.startswith("bytes") else SMALLEST_COUNT


def drifts(old: dict[str, float], new: dict[str, float]) -> list[Drift]:
    """The figures that have moved, sorted by name."""
    moved = []
    for name in sorted(old.keys() | new.keys()):
        was, now = old.get(name), new.get(name)
        if abs((now or 0) - (was or 0)) > max(LIMIT * abs(was or 0), smallest(name)):
            moved.append(Drift(name, was, now))
    return moved


def engine_of(name: str) -> str:
    """The engine that a figure is about."""
    return name.split(" | ")[0].split(" ")[0]


def of_known_engines(measured: dict[str, float], known: dict[str, float]) -> dict[str, float]:
    """Without engines of which the ledger has nothing at all: a new engine enters the ledger by an update."""
    engines = {engine_of(name) for name in known}
    return {name: value for name, value in measured.items() if engine_of(name) in engines}


def digest(figures: dict[str, float]) -> str:
    lines = "".join(f"{name}: {figures[name]}\n" for name in sorted(figures))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


class Ledger:
    """The figures, and why they became what they are: the oldest change first."""

    def __init__(self, path: Path):
        self.path = path
        text = {"changes": [], "figures": {}}
        if path.exists():
            text = json.loads(path.read_text(encoding="utf-8"))
        self.changes: list[dict[str, str]] = text["changes"]
        self.figures: dict[str, float] = text["figures"]

    def problem(self) -> str:
        """Why the file cannot be as an update has left it; empty if it can."""
        if list(self.figures) != sorted(self.figures):
            return "its figures are not sorted"
        if not self.changes or self.changes[-1]["digest"] != digest(self.figures):
            return "a figure was changed, and no line of `changes` gives the reason"
        return ""

    def write_down(self, moved: list[Drift], reason: str) -> None:
        for drift in moved:
            if drift.new is None:
                del self.figures[drift.name]
            else:
                self.figures[drift.name] = drift.new
        self.figures = dict(sorted(self.figures.items()))
        both = [d for d in moved if d.old is not None and d.new is not None]
        most = f"; the most: {max(both, key=lambda d: abs(d.share()))}" if both else ""
        self.changes.append({"reason": reason, "moved": f"{len(moved)} figures{most}",
                             "digest": digest(self.figures)})
        self.save()

    def save(self) -> None:
        changes = ",\n".join(f"  {json.dumps(change)}" for change in self.changes)
        figures = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}"
                             for name, value in sorted(self.figures.items()))
        self.path.write_text(f'{{\n "changes": [\n{changes}\n ],\n "figures": {{\n{figures}\n }}\n}}\n',
                             encoding="utf-8")


def measure(program: str) -> dict[str, float]:
    run = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"ledger: {program} ended with exit code {run.returncode}")
    return json.loads(run.stdout)


def check(ledger: Ledger, program: Optional[str], docs: Path) -> int:
    if problem := ledger.problem():
        print(f"ledger: {ledger.path}: {problem}; use: {COMMAND}")
        return 1
    if stale := pages.stale(docs, ledger.figures):
        print("\n".join(f"ledger: {line}" for line in stale))
        print("ledger: pages are made from the ledger; write them anew: ./dev ledger --pages")
        return 1
    if program is None:
        print(f"ledger: {len(ledger.figures)} figures have their reasons, and the pages agree with them")
        return 0
    moved = drifts(ledger.figures, of_known_engines(measure(program), ledger.figures))
    if not moved:
        print(f"ledger: {len(ledger.figures)} figures are what they were")
        return 0
    print(f"ledger: {len(moved)} figures have moved by more than {LIMIT:.0%}, and nothing says why:")
    print("\n".join(f"  {drift}" for drift in moved))
    print(f"If that is meant, write it down in the same commit: {COMMAND}")
    return 1


def update(ledger: Ledger, program: str, reason: str, docs: Path) -> int:
    reason = " ".join(reason.split())
    if len(reason.split()) < FEWEST_WORDS:
        print(f"ledger: figures move for a reason; give it in a few words: {COMMAND}")
        return 2
    moved = drifts(ledger.figures, measure(program))
    if moved or ledger.problem():
        ledger.write_down(moved, reason)
    print("\n".join(f"  {drift}" for drift in moved))
    print(f"ledger: {len(moved)} figures have moved")
    pages.write(docs, ledger.figures)
    return 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["check", "update", "pages"])
    parser.add_argument("--program", help="measures, and prints the figures as JSON")
    parser.add_argument("--reason", default="", help="why figures have moved")
    parser.add_argument("--ledger", type=Path, default=LEDGER)
    parser.add_argument("--docs", type=Path, default=TOP / "docs")
    given = parser.parse_args(arguments)
    ledger = Ledger(given.ledger)
    if given.command == "pages":
        pages.write(given.docs, ledger.figures)
        return 0
    if given.command == "check":
        return check(ledger, given.program, given.docs)
    if given.program is None:
        parser.error("update: --program is missing")
    return update(ledger, given.program, given.reason, given.docs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
