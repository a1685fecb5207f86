#!/usr/bin/env python3
"""Tests of the ledger: what counts as moved, that a reason is demanded, and that pages agree with it."""

import contextlib
import io
import json
import re
import stat
import tempfile
import unittest
from pathlib import Path

import ledger
import pages

RATE = "shard | shard-figure18, alpha 0.1 | operation | operations/s"
TRIPS = "shard | one client | insert | index trips"
ALL_TRIPS = "shard | one client | insert | trips"
BYTES = "shard | one client | insert | bytes read"
LOAD = "shard | load | operation | operations/s"
FIGURES = {LOAD: 4000000, TRIPS: 2.0, ALL_TRIPS: 2.1, BYTES: 600.0, RATE: 4915659}
REASON = "splits read less"
PAGE = "Rates:\n\n<!-- figures: alphas -->\n<!-- end of figures -->\n\nThat is all.\n"


class Scratch(unittest.TestCase):
    """A ledger, a page, and a program that measures what a test wants it to."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        top = Path(folder.name)
        self.ledger, self.docs, self.program = top / "ledger.json", top / "docs", top / "program"
        self.docs.mkdir()
        self.page = self.docs / "page.md"
        self.page.write_text(PAGE)
        self.measures(FIGURES)
        self.assertEqual(self.run_ledger("update", "--reason", "the first figures of all")[0], 0)

    def measures(self, figures):
        self.program.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(figures)}\nEND\n")
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)

    def run_ledger(self, command, *arguments, measured=True):
        words = [command, "--ledger", str(self.ledger), "--docs", str(self.docs), *arguments]
        if measured:
            words += ["--program", str(self.program)]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = ledger.main(words)
        return code, out.getvalue()


class Moved(Scratch):
    def check_with(self, changed):
        self.measures(FIGURES | changed)
        return self.run_ledger("check")

    def test_half_a_percent_passes_in_both_directions(self):
        for factor in (0.995, 1.005):
            for name in (RATE, TRIPS, BYTES):
                self.assertEqual(self.check_with({name: FIGURES[name] * factor})[0], 0, name)

    def test_one_and_a_half_percent_is_caught_in_both_directions(self):
        for factor in (0.985, 1.015):
            for name in (RATE, TRIPS, BYTES):
                code, out = self.check_with({name: FIGURES[name] * factor})
                self.assertEqual(code, 1, name)
                self.assertIn(name, out)

    def test_the_message_has_name_old_new_and_the_command(self):
        _, out = self.check_with({RATE: 4151234})
        self.assertIn(f"{RATE}: 4915659 -> 4151234 (-15.6%)", out)
        self.assertIn("./dev ledger --update --reason", out)

    def test_an_engine_that_the_ledger_does_not_know_enters_it_by_an_update_only(self):
        name = "hash cache=1 | c | operation | operations/s"
        self.assertEqual(self.check_with({name: 1000000})[0], 0)
        self.assertEqual(self.run_ledger("update", "--reason", "a new engine comes")[0], 0)
        self.assertEqual(self.check_with({name: 1000000})[0], 0)
        self.assertEqual(self.check_with({name: 2000000})[0], 1)

    def test_a_new_figure_and_one_that_is_gone_are_caught(self):
        code, out = self.check_with({"shard | c | operation | operations/s": 1000000})
        self.assertEqual(code, 1)
        self.assertIn("shard | c | operation | operations/s: new", out)
        self.measures({name: value for name, value in FIGURES.items() if name != TRIPS})
        code, out = self.run_ledger("check")
        self.assertEqual(code, 1)
        self.assertIn(f"{TRIPS}: gone", out)

    def test_a_verb_that_is_hardly_ever_used_may_be_used_twice_as_often(self):
        self.assertEqual(self.check_with({"shard | one client | insert | FAA": 0.004})[0], 0)

    def test_a_program_that_fails_is_no_success(self):
        self.program.write_text("#!/bin/sh\nexit 3\n")
        with self.assertRaises(SystemExit):
            self.run_ledger("check")


class Reasons(Scratch):
    def test_an_update_demands_a_reason(self):
        self.measures(FIGURES | {RATE: 4151234})
        before = self.ledger.read_text()
        for words in ([], ["--reason", " "], ["--reason", "faster"]):
            self.assertEqual(self.run_ledger("update", *words)[0], 2)
        self.assertEqual(self.ledger.read_text(), before)

    def test_an_update_writes_the_figure_down_with_its_reason(self):
        self.measures(FIGURES | {RATE: 4151234})
        self.assertEqual(self.run_ledger("update", "--reason", REASON)[0], 0)
        written = ledger.Ledger(self.ledger)
        self.assertEqual(written.figures[RATE], 4151234)
        self.assertEqual(written.changes[-1]["reason"], REASON)
        self.assertIn("4915659 -> 4151234", written.changes[-1]["moved"])
        self.assertEqual(self.run_ledger("check")[0], 0)

    def test_an_update_leaves_figures_alone_that_have_not_moved(self):
        self.measures(FIGURES | {RATE: 4151234, TRIPS: 2.015})
        self.run_ledger("update", "--reason", REASON)
        self.assertEqual(ledger.Ledger(self.ledger).figures[TRIPS], 2.0)

    def test_a_figure_that_was_changed_by_hand_is_caught(self):
        self.ledger.write_text(self.ledger.read_text().replace("4915659", "4151234"))
        code, out = self.run_ledger("check", measured=False)
        self.assertEqual(code, 1)
        self.assertIn("no line of `changes` gives the reason", out)

    def test_the_file_has_one_figure_a_line_sorted(self):
        names = re.findall(r'^  "(.*)": [\d.]+,?$', self.ledger.read_text(), re.MULTILINE)
        self.assertEqual(names, sorted(FIGURES))


class Pages(Scratch):
    def test_an_update_writes_the_page(self):
        self.assertIn("| 0.1 | 4.92 M |", self.page.read_text())
        self.measures(FIGURES | {RATE: 4151234})
        self.run_ledger("update", "--reason", REASON)
        text = self.page.read_text()
        self.assertIn("| 0.1 | 4.15 M |", text)
        self.assertTrue(text.startswith("Rates:\n\n<!--") and text.endswith("\n\nThat is all.\n"))

    def test_a_page_with_another_figure_is_caught(self):
        self.page.write_text(self.page.read_text().replace("4.92", "5.00"))
        code, out = self.run_ledger("check", measured=False)
        self.assertEqual(code, 1)
        self.assertIn("page.md", out)
        self.assertEqual(self.run_ledger("pages", measured=False)[0], 0)
        self.assertEqual(self.run_ledger("check", measured=False)[0], 0)

    def test_a_page_that_asks_for_what_is_not_there_is_caught(self):
        self.page.write_text(PAGE.replace("alphas", "kinds of nosuch"))
        code, out = self.run_ledger("check", measured=False)
        self.assertEqual(code, 1)
        self.assertIn("there are no figures 'kinds of nosuch'", out)

    def test_every_table_of_the_ledger_is_on_the_page_of_everything(self):
        text = pages.render("everything", FIGURES)
        self.assertIn("## shard", text)
        self.assertIn("| insert | 2.000 | 2.100 | 600 | 0 |", text)
        self.assertIn("| `load` | 4.00 M | - |", text)


if __name__ == "__main__":
    unittest.main()
