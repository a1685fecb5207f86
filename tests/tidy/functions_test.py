#!/usr/bin/env python3
"""Tests of functions.py: which functions it sees, where they begin, and how long they are."""

import tempfile
import unittest
from pathlib import Path

from functions import findings, functions


def seen(text):
    return [(function.name, function.line, function.lines) for function in functions(text)]


class Seen(unittest.TestCase):
    def test_a_function_has_the_lines_from_its_signature_to_its_brace(self):
        self.assertEqual(seen("int A() {\n  return 1;\n}\n"), [("A", 1, 3)])
        self.assertEqual(seen("\n// Why.\nTask<std::vector<int>>\nTable::Get(\n    int a) const {\n}\n"),
                         [("Table::Get", 3, 4)])

    def test_functions_in_namespaces_and_classes(self):
        text = ('namespace a::b {\nnamespace {\nextern "C" {\nvoid A() {\n}\n}\n'
                "class B final : public C {\n public:\n  B() = default;\n  int D() const { return 1; }\n"
                "  struct E {\n    void F() noexcept override {\n    }\n  };\n};\n}\n}\n")
        self.assertEqual(seen(text), [("A", 4, 2), ("D", 10, 1), ("F", 12, 2)])

    def test_constructors_that_initialize_members_with_braces(self):
        text = ("Table::Table(int a)\n    : base(a),\n      b_{a},\n      c_(a) {\n  Use();\n}\n"
                "Table::~Table() {\n}\n")
        self.assertEqual(seen(text), [("Table::Table", 1, 6), ("Table::~Table", 7, 2)])

    def test_templates_operators_and_trailing_return_types(self):
        text = ("template <class T>\nauto Make(T t) -> Result<T> {\n}\n"
                "bool operator==(const A& a) {\n}\ntemplate <class T>\nstruct B {\n  void C() {\n  }\n};\n")
        self.assertEqual([(line, lines) for _, line, lines in seen(text)], [(1, 3), (4, 2), (8, 2)])

    def test_a_lambda_belongs_to_its_function(self):
        text = "void A() {\n  const auto b = [] {\n    if (c) {\n    }\n  };\n}\n"
        self.assertEqual(seen(text), [("A", 1, 6)])

    def test_braces_in_comments_literals_and_directives_do_not_count(self):
        text = ('void A() {\n  // {\n  /* { */\n  Say("{", \'{\', R"x({)x");\n}\n#define B() {\n'
                "constexpr int kC = 1'000;\nvoid D() {\n}\n")
        self.assertEqual(seen(text), [("A", 1, 5), ("D", 8, 2)])

    def test_arrays_and_enums_are_no_functions(self):
        text = ("constexpr std::array kA = {\n  F(1),\n};\nenum class B {\n  kC,\n};\n"
                "const A b{\n  F(),\n};\nint D() {\n}\n")
        self.assertEqual(seen(text), [("D", 10, 2)])


class Found(unittest.TestCase):
    def test_only_long_functions_of_src_the_longest_first(self):
        def function(name, lines):
            return f"void {name}() {{\n" + "  Step();\n" * (lines - 2) + "}\n"

        with tempfile.TemporaryDirectory() as folder:
            top = Path(folder)
            for path in ("src/base", "tests"):
                (top / path).mkdir(parents=True)
            (top / "src/base/a.cc").write_text(
                function("Fits", 60) + function("Long", 61) + function("Longer", 70))
            (top / "tests/b.cc").write_text(function("OfATest", 100))
            self.assertEqual(list(findings(top)),
                             ["src/base/a.cc:122: Longer has 70 lines; 60 at most fit a screen",
                              "src/base/a.cc:61: Long has 61 lines; 60 at most fit a screen"])


if __name__ == "__main__":
    unittest.main()
