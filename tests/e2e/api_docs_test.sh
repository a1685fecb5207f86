#!/usr/bin/env bash
# Given docs/api.md. Expect that every piece of C++ in it stands, line by line, in the example that was named
# last.
set -euo pipefail

python3 - "$FARSIDE_SOURCE" <<'END'
import re
import sys
from pathlib import Path

top = Path(sys.argv[1])
example, snippet, snippets, missing = "", None, 0, []
for line in (top / "docs/api.md").read_text().splitlines():
    if snippet is None:
        if named := re.search(r"From \[(\w+\.cc)\]|^\[(\w+\.cc)\]", line):
            example = named[1] or named[2]
        if line == "```cpp":
            snippet = []
    elif line == "```":
        snippets += 1
        if "\n".join(snippet) not in (top / "examples" / example).read_text():
            missing.append(f"not in {example}:\n" + "\n".join(snippet))
        snippet = None
    else:
        snippet.append(line)
print("\n\n".join(missing) or f"{snippets} snippets, all of them in the examples")
sys.exit(1 if missing or snippets == 0 else 0)
END
