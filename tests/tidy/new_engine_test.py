#!/usr/bin/env python3
"""Tests of tools/new_engine: the skeleton of an engine is complete, and nothing else is touched. Nothing is built here;
tests/e2e/new_engine_test.sh does that."""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from source_tree import CODE_FOLDERS
from tidy import findings

TOP = Path(__file__).resolve().parents[2]
OWN = ("src/index/sample/", "tests/engines/sample/", "docs/engines/sample.md", "docs/layouts/sample.md")


def digests(top: Path) -> dict[str, str]:
    return {path.relative_to(top).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in top.rglob("*") if path.is_file()}


class NewEngineTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.top = Path(cls.folder.name)
        for name in [*CODE_FOLDERS, "docs"]:
            shutil.copytree(TOP / name, cls.top / name, ignore=shutil.ignore_patterns("__pycache__"))
        cls.before = digests(cls.top)
        cls.first = cls.new_engine("sample")
        cls.after = digests(cls.top)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def new_engine(cls, name: str) -> subprocess.CompletedProcess:
        tool = TOP / "tools/new_engine/new_engine.py"
        return subprocess.run([sys.executable, "-B", tool, name, "--top", cls.top], capture_output=True, text=True)

    def made(self) -> list[str]:
        return sorted(set(self.after) - set(self.before))

    def test_no_file_outside_of_its_own_places_is_touched(self):
        self.assertEqual(self.first.returncode, 0, self.first.stderr)
        self.assertEqual([path for path in self.made() if not path.startswith(OWN)], [])
        self.assertEqual({path: self.after[path] for path in self.before}, self.before)

    def test_every_part_of_an_engine_is_there(self):
        for path in ["src/index/sample/layout.h", "src/index/sample/engine.cc", "src/index/sample/sample.h", "src/index/sample/table.h",
                     "src/index/sample/options.cc", "src/index/sample/mutants.h",
                     "tests/engines/sample/layout_test.cc", "tests/engines/sample/trips_test.cc",
                     "tests/engines/sample/mutants_test.cc", "tests/engines/sample/crash_test.cc",
                     "docs/engines/sample.md", "docs/layouts/sample.md"]:
            self.assertIn(path, self.made())

    def test_what_was_made_is_listed_with_what_to_do_next(self):
        for path in self.made():
            self.assertIn(path + "\n", self.first.stdout)
        self.assertIn("What to do next", self.first.stdout)

    def test_the_model_is_named_nowhere_but_as_the_origin(self):
        for path in self.made():
            lines = (self.top / path).read_text().splitlines()
            named = [line for line in lines if "reference" in line.lower()]
            origin = [line for line in named if "](reference.md)" in line]
            self.assertEqual(named, origin, path)

    def test_the_rules_of_the_tree_hold(self):
        self.assertEqual(list(findings(self.top)), [])

    def test_the_same_name_again_is_refused(self):
        again = self.new_engine("sample")
        self.assertEqual(again.returncode, 2)
        self.assertIn("src/index/sample", again.stderr)

    def test_bad_names_are_refused(self):
        for name in ["", "Sample", "9lives", "two words", "kit", "reference2", "a" * 16, "../up", "my-engine",
                     "class", "union", "std", "farside"]:
            self.assertEqual(self.new_engine(name).returncode, 2, name)
        self.assertEqual(digests(self.top), self.after)


if __name__ == "__main__":
    unittest.main()
