#!/usr/bin/env python3
"""Makes the skeleton of an engine: a copy of the reference engine, its tests and its pages, by another name.

usage: new_engine.py NAME [--top FOLDER]

The reference engine is the skeleton, because it is small, complete (a lock with takeover, blocks that are
retired, walks, planted bugs), and tested every day. The copy builds and passes all tests without an edit, and
no file outside of its four places is changed: CMake finds what is new.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Iterator

MODEL = "reference"
# Where an engine stands. The pages are files, the others are folders.
FOLDERS = ["src/index/{}", "tests/engines/{}"]
PAGES = ["docs/engines/{}.md", "docs/layouts/{}.md"]

# As in --engine, and as a C++ namespace. The catalog has room for 15 characters.
GOOD_NAME = re.compile(r"[a-z][a-z0-9]{1,14}")
# Folders of src/index and tests/engines that are no engines, and words that cannot name a namespace here.
TAKEN = {"kit", "conformance", "baseline", "base", "fabric", "pool", "index", "store", "check", "tools",
         "workload", "farside", "std", "fmt", "testing", "internal", "main", "linux", "unix"}
# Words of C++ that a name could be.
KEYWORDS = set("""
    alignas alignof and asm auto bitand bitor bool break case catch char class compl concept const consteval
    constexpr constinit continue decltype default delete do double else enum explicit export extern false final
    float for friend goto if import inline int long module mutable namespace new noexcept not nullptr operator or
    override private protected public register requires return short signed sizeof static struct switch template
    this throw true try typedef typeid typename union unsigned using virtual void volatile while xor""".split())

INTRODUCTION = """# The {name} table

Made by `./dev new-engine {name}` from the [reference table](reference.md). What follows describes the
protocol that the copy starts with; rewrite it with the code, invariants first. The steps are in [how to add
an engine](../add-an-engine.md).

Its bytes are in [layouts/{name}.md](../layouts/{name}.md), its code in `src/index/{name}`.

"""

NEXT_STEPS = """
What to do next (docs/add-an-engine.md says more, and how long each step takes):
  1. ./dev test -R {Name}                                   its own tests; the first build takes longest
     ./dev test -R 'conformance/.*{name}'                   the tests of every engine
     ./dev soak {name} --seeds 100                          a fault at every verb
  2. docs/engines/{name}.md: write down the invariants {name}/1, {name}/2, ... of your protocol
  3. src/index/{name}/layout.h: your words and structs; tests/engines/{name}/layout_test.cc: their golden bytes
  4. src/index/{name}/search.cc, change.cc, lock.cc: TrySearch and TryChange, one trip after the other
  5. src/index/{name}/walk.cc, scan.cc: everything that is reachable; no Scan and Last if keys have no order
  6. src/index/{name}/{name}.h, engine.cc: traits, stress_options, OptionsFor
  7. src/index/{name}/mutants.h: a planted bug for every step that is there for a reason
  8. tests/engines/{name}/trips_test.cc: what every operation costs, beside the paper
"""


def renamed(text: str, name: str) -> str:
    return text.replace(MODEL, name).replace(MODEL.capitalize(), name.capitalize())


def sorted_includes(text: str) -> str:
    """Includes in the order of their names, within each block of them: the new name may stand elsewhere."""
    def in_order(block: re.Match) -> str:
        return "".join(sorted(block[0].splitlines(keepends=True)))

    return re.sub(r'(?:^#include "[^"\n]+"\n){2,}', in_order, text, flags=re.MULTILINE)


def without_rank(text: str) -> str:
    """A new engine stands where engines stand that say nothing about it: before the reference engine."""
    return re.sub(r"\.rank = \d+, ", "", text)


def with_introduction(page: str, name: str) -> str:
    """The page of the engine, with what is true of the copy at its head."""
    return INTRODUCTION.format(name=name) + page[page.index("## "):]


def model_files(top: Path) -> Iterator[Path]:
    for folder in FOLDERS:
        yield from sorted(path for path in (top / folder.format(MODEL)).rglob("*") if path.is_file())
    yield from (top / page.format(MODEL) for page in PAGES)


def copy_of(path: Path, top: Path, name: str) -> tuple[Path, str]:
    text = renamed(path.read_text(encoding="utf-8"), name)
    if path.suffix in (".h", ".cc"):
        text = sorted_includes(without_rank(text))
    if path.parent == top / "docs/engines":
        text = with_introduction(text, name)
    return top / renamed(str(path.relative_to(top)), name), text


def problem_with(name: str, top: Path) -> str:
    if not GOOD_NAME.fullmatch(name):
        return "a name has 2 to 15 lower-case letters and digits, the first of them a letter"
    if name in TAKEN or name in KEYWORDS or MODEL in name:
        return f"'{name}' means something else here; choose another name"
    there = [place.format(name) for place in FOLDERS + PAGES if (top / place.format(name)).exists()]
    return f"{', '.join(there)} is there already" if there else ""


def make(name: str, top: Path) -> list[Path]:
    """Writes the files of the new engine and returns them."""
    made = []
    for path in model_files(top):
        target, text = copy_of(path, top, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        made.append(target)
    code = [str(path) for path in made if path.suffix in (".h", ".cc")]
    # Lines break elsewhere with a name of another length.
    if shutil.which("clang-format"):
        subprocess.run(["clang-format", "-i", *code], cwd=top, check=True)
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--top", type=Path, default=Path(__file__).resolve().parents[2], help="top of the source tree")
    arguments = parser.parse_args()
    top = arguments.top.resolve()
    problem = problem_with(arguments.name, top)
    if problem:
        print(f"new-engine: {problem}", file=sys.stderr)
        return 2
    for path in make(arguments.name, top):
        print(path.relative_to(top))
    print(NEXT_STEPS.format(name=arguments.name, Name=arguments.name.capitalize()), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
