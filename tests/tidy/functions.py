#!/usr/bin/env python3
"""Finds functions in src/ that do not fit a screen. Prints one line per finding, the longest first.

usage: functions.py TOP [--most LINES]

A function has the lines from the first one of its signature to its closing brace. Lambdas and local classes
count as a part of the function they stand in.
"""

import argparse
import re
import sys
from pathlib import Path
from typing import Iterator, NamedTuple

from source_tree import code_files, read

MOST_LINES = 60

# Comments, literals and preprocessor lines: nothing in them is a brace.
OPAQUE = re.compile(
    r'//[^\n]*|/\*.*?\*/'
    r'|R"(?P<fence>[^(\s]*)\(.*?\)(?P=fence)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'"
    r'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*',
    re.DOTALL | re.MULTILINE)

# How the text before a brace ends if the brace opens the body of a function: its parameters, and what may
# follow them.
BODY = re.compile(r"(?:\)|\bconst|\bnoexcept|\boverride|\bfinal|&|->\s*[\w:<>,&*\s]+)\s*$")
# A scope in which functions stand.
SCOPE = re.compile(
    r"^(?:(?:inline\s+)?namespace\b|extern\s*_+$|(?:template\s*<.*>\s*)?(?:class|struct|union)\b)", re.DOTALL)
# A constructor that initializes its members: a brace behind the name of one opens no body.
INITIALIZERS = re.compile(r"\)\s*(?:noexcept\s*)?:(?!:)")


class Function(NamedTuple):
    name: str
    line: int  # of its signature
    lines: int


def blank(match: re.Match) -> str:
    """As many characters and lines as before, without meaning: spaces, or underscores for a literal."""
    return re.sub(r"[^\n]", "_" if match[0][0] in "R\"'" else " ", match[0])


def matching(text: str, opening: int) -> int:
    """Where the brace that opens at `opening` is closed."""
    depth = 0
    for at in range(opening, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return len(text) - 1


def name_of(signature: str) -> str:
    scopes, name = r"(?:[\w~]+(?:<[^<>()]*>)?::)*", r"(?:~?\w+|operator\s*[^\s(]+|operator\s*\(\))"
    found = re.search(rf"({scopes}{name})\s*\(", signature)
    return found[1] if found else signature.split("\n")[0].strip()


def is_body(head: str) -> bool:
    if "(" not in head or re.search(r"=\s*$", head):
        return False
    colon = INITIALIZERS.search(head)
    if colon:
        return bool(re.search(r"[)}]\s*$", head)) and len(head[colon.end():].strip()) > 0
    return bool(BODY.search(head))


def functions(text: str) -> Iterator[Function]:
    text = OPAQUE.sub(blank, text)
    begin = at = 0  # `begin`: behind the last declaration
    while at < len(text):
        if text[at] in ";}":
            begin = at + 1
        elif text[at] == ":" and re.search(r"\b(?:public|protected|private)\s*$", text[begin:at]):
            begin = at + 1
        elif text[at] == "{":
            head = text[begin:at].strip()
            if SCOPE.match(head) and not head.endswith(")"):
                begin = at + 1
            else:
                end = matching(text, at)
                if is_body(head):
                    first = begin + len(text[begin:at]) - len(text[begin:at].lstrip())
                    yield Function(name_of(head), text.count("\n", 0, first) + 1,
                                   text.count("\n", first, end) + 1)
                    begin = end + 1
                at = end  # members and arrays that are initialized go on until their semicolon
        at += 1


def findings(top: Path, most: int = MOST_LINES) -> Iterator[str]:
    found = [(function, path) for path in code_files(top) if path.parts[0] == "src"
             for function in functions(read(top, path)) if function.lines > most]
    for function, path in sorted(found, key=lambda pair: (-pair[0].lines, pair[1], pair[0].line)):
        yield (f"{path}:{function.line}: {function.name} has {function.lines} lines; "
               f"{most} at most fit a screen")


def main() -> int:
    parser = argparse.ArgumentParser(description="Finds functions in src/ that do not fit a screen.")
    parser.add_argument("top", type=Path)
    parser.add_argument("--most", type=int, default=MOST_LINES, help="lines that a function may have")
    arguments = parser.parse_args()
    if not any(path.parts[0] == "src" for path in code_files(arguments.top)):
        print(f"functions: no C++ files below {arguments.top}/src; is that the top of the tree?",
              file=sys.stderr)
        return 2
    found = list(findings(arguments.top, arguments.most))
    print("\n".join(found) if found else "functions: nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
