#!/usr/bin/env python3
"""Tests of the tidy checks: each rule is shown a small bad tree and must complain, and a good one."""

import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from tidy import findings

HERE = Path(__file__).resolve().parent
COMPILER = os.environ.get("FARSIDE_CXX", "c++")


class Tree(unittest.TestCase):
    """A scratch source tree."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name) / "top"
        self.top.mkdir()

    def write(self, path, text):
        file = self.top / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def header(self, path, *included):
        self.write(path, "#pragma once\n" + "".join(f'#include "{i}"\n' for i in included))

    def run_script(self, script, *arguments):
        return subprocess.run([sys.executable, "-B", str(HERE / script), *map(str, arguments)],
                              capture_output=True, text=True, check=False)


class IncludeRules(Tree):
    def expect(self, path, included, complaint):
        """Expects a complaint when `path` includes `included`, whether or not the latter exists."""
        self.header(path, included)
        self.assertRegex("\n".join(findings(self.top)), complaint)
        for root in ("src", "include", "."):
            if included.startswith({"include": "farside/", ".": "tools/"}.get(root, "")):
                self.header(f"{root}/{included}")
                break
        self.assertRegex("\n".join(findings(self.top)), complaint)

    def expect_fine(self, path, included):
        self.header(path, included)
        self.header(f"src/{included}")
        self.assertEqual(list(findings(self.top)), [])

    def test_upward_includes_are_found(self):
        self.expect("src/base/a.h", "fabric/b.h", "a.h:2: .*base must not know the layer fabric")

    def test_upward_includes_across_several_layers_are_found(self):
        self.expect("src/fabric/a.h", "check/b.h", "fabric must not know the layer check")
        self.expect("src/index/a.h", "store/b.h", "index must not know the layer store")
        self.expect("src/pool/a.h", "index/index.h", "pool must not know the layer index")

    def test_workload_stands_on_base_alone_and_only_tools_use_it(self):
        self.expect_fine("src/workload/a.h", "base/b.h")
        self.expect_fine("tools/a.h", "workload/b.h")
        self.expect("src/workload/c.h", "fabric/d.h", "workload must not know the layer fabric")
        self.expect("src/check/c.h", "workload/d.h", "check must not know the layer workload")

    def test_no_layer_includes_tools(self):
        self.expect("src/check/a.h", "tools/b.h", "check must not know the layer tools")

    def test_upward_includes_in_cc_files_and_with_angle_brackets_are_found(self):
        self.header("src/fabric/b.h")
        self.write("src/base/a.cc", "#  include <fabric/b.h>\n#include <vector>\n")
        self.assertEqual(len(list(findings(self.top))), 1)

    def test_relative_paths_do_not_hide_an_upward_include(self):
        self.header("src/fabric/b.h")
        self.write("src/base/a.cc", '#include "../fabric/b.h"\n')
        self.assertRegex("\n".join(findings(self.top)), "base must not know the layer fabric")

    def test_downward_includes_are_fine(self):
        self.expect_fine("src/check/a.h", "base/b.h")
        self.expect_fine("src/index/chime/a.h", "fabric/b.h")
        self.expect_fine("tools/a.h", "index/chime/chime.h")

    def test_public_headers_of_base_are_base_and_others_are_store(self):
        self.header("include/farside/result.h")
        self.header("include/farside/pool.h", "farside/result.h")
        self.header("src/base/a.h", "farside/result.h")
        self.assertEqual(list(findings(self.top)), [])
        self.header("src/index/a.h", "farside/pool.h")
        self.assertRegex("\n".join(findings(self.top)), "index must not know the layer store")

    def test_public_headers_include_only_public_headers(self):
        self.header("src/base/b.h")
        self.header("include/farside/result.h", "base/b.h")
        self.assertRegex("\n".join(findings(self.top)), "only installed headers")

    def test_includes_are_named_from_src(self):
        self.header("src/base/b.h")
        self.header("src/base/a.h", "src/base/b.h")
        self.assertRegex("\n".join(findings(self.top)), "name it from src/")

    def test_an_engine_including_an_engine_is_found(self):
        self.expect("src/index/shard/a.h", "index/chime/layout.h", "shard must not know another engine")
        self.expect("src/index/baseline/race/a.h", "index/shard/b.h", "race must not know another engine")
        self.expect("src/index/baseline/race/a.h", "index/baseline/farm/b.h", "another engine")

    def test_the_core_of_index_including_an_engine_is_found(self):
        self.expect("src/index/index.h", "index/chime/chime.h", "core of index must not know")
        self.expect("src/index/kit/block.h", "index/shard/shard.h", "kit must not know")

    def test_an_engine_may_use_common_and_the_interface(self):
        self.expect_fine("src/index/shard/a.h", "index/index.h")
        self.expect_fine("src/index/shard/b.h", "index/kit/block.h")
        self.expect_fine("src/index/baseline/race/a.h", "index/kit/block.h")

    def test_a_backend_including_a_backend_is_found(self):
        self.expect("src/fabric/embedded/a.h", "fabric/sim/b.h", "embedded must not know another backend")
        self.expect("src/fabric/memory/a.h", "fabric/sim/b.h", "memory must not know another backend")
        self.expect("src/fabric/fabric.h", "fabric/sim/b.h", "core of fabric must not know")

    def test_a_backend_may_use_the_shared_memory_routines(self):
        self.expect_fine("src/fabric/embedded/a.h", "fabric/memory/copy.h")
        self.expect_fine("src/fabric/sim/a.h", "fabric/fabric.h")

    def test_tests_may_include_everything(self):
        self.header("src/index/chime/a.h")
        self.write("tests/base/a_test.cc", '#include "index/chime/a.h"\n')
        self.assertEqual(list(findings(self.top)), [])


class NodeRules(Tree):
    def test_nodes_as_indices_are_found(self):
        self.write("src/index/some/a.cc", "x = nodes[Index(at.node)];\ny = nodes_[fabric::Index(node)];\n")
        self.assertEqual(len([f for f in findings(self.top) if "a node is no index" in f]), 2)

    def test_nodes_inside_of_an_index_are_found(self):
        for use in ("v[ptr.node()]", "v[ptr->node()].x", "v[static_cast<size_t>(ptr.node())]",
                    "f()[ptr.node() + 1]", "v[2 * Index(at.node)]", "v[w[1]][Index(at.node)]",
                    "v[w[i] + Index(at.node)]", "v.at(Index(at.node))", "v->at(fabric::Index(at.node))",
                    "v.at(ptr.node())", "v.at(f(i) + ptr.node())", "v.at(static_cast<size_t>(ptr.node()))"):
            self.write("src/index/some/a.cc", f"x = {use};\n")
            self.assertEqual(len([f for f in findings(self.top) if "a node is no index" in f]), 1, use)

    def test_nodes_beside_an_index_are_fine(self):
        for use in ("f(v[i], Index(at.node))", "f(v.at(i), ptr.node())", "v[i].node()", "v.at(i).node()",
                    "[node = ptr.node()] { return node; }", "At(ptr.node(), v[0])", "format(Index(at.node))",
                    "ForNode(v, ptr.node())", "where_at(ptr.node())", "v[BucketIndex(key)]"):
            self.write("src/index/some/a.cc", f"x = {use};\n")
            self.assertEqual(list(findings(self.top)), [], use)

    def test_nodes_in_text_and_in_the_fabrics_are_fine(self):
        self.write("src/index/some/a.cc", 'fmt::format("node {}", Index(node));  // not nodes[Index(node)]\n')
        self.write("src/fabric/some/a.cc", "x = nodes[Index(at.node)];\n")
        self.assertEqual(list(findings(self.top)), [])


class TextRules(Tree):
    def test_a_header_without_pragma_once_is_found(self):
        self.write("src/base/a.h", "#ifndef A\n#define A\n#endif\n// #pragma once\n")
        self.assertRegex("\n".join(findings(self.top)), "src/base/a.h:1: .*#pragma once")

    def test_a_mutant_in_a_header_is_found(self):
        self.write("src/index/shard/a.h", "#pragma once\n// As in Mutant(kName).\nbool A() { return Mutant(kA); }\n")
        self.assertEqual(list(findings(self.top)), ["src/index/shard/a.h:3: call Mutant() in .cc files only"])

    def test_a_mutant_in_a_source_file_is_fine(self):
        self.write("src/index/shard/a.cc", "bool A() { return Mutant(kA); }\n")
        self.write("src/base/mutant.h", "#pragma once\nconstexpr bool Mutant(int) { return false; }\n")
        self.assertEqual(list(findings(self.top)), [])

    def test_a_planted_bug_that_no_test_knows_is_found(self):
        self.write("src/pool/mutants.h", '#pragma once\ninline constexpr MutantName kLost{"pool/lost"};\n')
        self.assertEqual(list(findings(self.top)), ["src/pool/mutants.h:2: no *mutants_test.cc catches kLost"])
        self.write("tests/pool/a_mutants_test.cc", "const ScopedMutant mutant(kLostToo);\n")
        self.assertEqual(len(list(findings(self.top))), 1)
        self.write("tests/pool/mutants_test.cc", "const ScopedMutant mutant(kLost);\n")
        self.assertEqual(list(findings(self.top)), [])

    def test_planted_bugs_in_a_list_that_a_test_goes_through_are_fine(self):
        self.write("src/index/shard/mutants.h", '#pragma once\ninline constexpr MutantName kA{"shard/a"};\n'
                   "inline constexpr std::array kAllMutants = {\n    kA,\n};\n")
        self.assertEqual(len(list(findings(self.top))), 1)
        self.write("tests/engines/shard/mutants_test.cc", '#include "index/shard/mutants.h"\nvoid F() { Use(kAllMutants); }\n')
        self.assertEqual(list(findings(self.top)), [])

    def test_absolute_paths_are_found_in_any_text(self):
        for folder in ("home", "work"):
            for file in ("docs/guide.md", "dev", "src/base/a.cc", "cmake/x.cmake"):
                written = self.write(file, f"see\n/{folder}/somebody/file\n")
                self.assertRegex("\n".join(findings(self.top)), f"{file}:2: an absolute path")
                written.unlink()

    def test_relative_paths_and_words_are_fine(self):
        for folder in ("home", "work"):
            self.write("docs/guide.md", f"a/{folder}/b, https://example.org/{folder}/page, $HOME/{folder}/x, {folder}/y\n")
            self.assertEqual(list(findings(self.top)), [])

    def test_markers_without_text_are_found(self):
        for word in ("TO" + "DO", "FIX" + "ME"):
            for rest in ("", ":", "(me)", ": later"):
                self.write("src/base/a.cc", f"// {word}{rest}\n")
                self.assertRegex("\n".join(findings(self.top)), "a.cc:1: a marker", msg=word + rest)

    def test_markers_with_an_explanation_are_fine(self):
        marker = "TO" + "DO"
        self.write("src/base/a.cc", f"// {marker}: use native masked atomics once mlx5 is supported\n")
        self.assertEqual(list(findings(self.top)), [])

    def test_the_build_folder_is_not_ours(self):
        self.write("build/release/notes.txt", "/ho" + "me/somebody\n")
        self.assertEqual(list(findings(self.top)), [])


class Scripts(Tree):
    def test_tidy_fails_with_findings_and_passes_without(self):
        self.header("src/base/a.h")
        self.assertEqual(self.run_script("tidy.py", self.top).returncode, 0)
        self.header("src/base/a.h", "fabric/b.h")
        run = self.run_script("tidy.py", self.top)
        self.assertEqual(run.returncode, 1)
        self.assertIn("base must not know the layer fabric", run.stdout)

    def test_a_tree_without_code_is_wrong_usage_not_success(self):
        self.assertEqual(self.run_script("tidy.py", self.top).returncode, 2)
        self.assertEqual(self.run_script("headers.py", self.top, self.top / "build").returncode, 2)


class HeadersAlone(Tree):
    def check(self):
        return self.run_script("headers.py", self.top, self.top / "build/headers", COMPILER)

    def test_a_header_that_misses_an_include_is_found(self):
        self.write("src/base/good.h", "#pragma once\n#include <string>\nstd::string Good();\n")
        self.assertEqual(self.check().returncode, 0)
        self.write("src/base/bad.h", "#pragma once\nstd::string Bad();\n")
        run = self.check()
        self.assertEqual(run.returncode, 1)
        self.assertIn("src/base/bad.h does not compile alone", run.stdout)
        self.assertNotIn("src/base/good.h does not", run.stdout)
        self.assertEqual(self.check().returncode, 1, "a failure must not be remembered as a success")

    def test_a_header_broken_by_another_one_later_is_found(self):
        inner = self.write("src/base/inner.h", "#pragma once\nstruct Inner {};\n")
        self.write("include/farside/outer.h", '#pragma once\n#include "base/inner.h"\nInner Make();\n')
        self.assertEqual(self.check().returncode, 0)
        time.sleep(0.05)
        inner.write_text("#pragma once\n")
        run = self.check()
        self.assertEqual(run.returncode, 1)
        self.assertIn("outer.h does not compile alone", run.stdout)

    def test_mutants_are_compiled_both_ways(self):
        self.write("src/index/kit/mutant.h",
                   "#pragma once\n#if FARSIDE_MUTANTS\n#include <string>\n#endif\n")
        self.assertEqual(self.check().returncode, 0)
        bad = self.write("src/index/bad.h",
                         '#pragma once\n#include "index/kit/mutant.h"\nstd::string Bad();\n')
        run = self.check()
        self.assertEqual(run.returncode, 1)
        self.assertNotIn("(with FARSIDE_MUTANTS=1)", run.stdout)
        bad.write_text('#pragma once\n#include "index/kit/mutant.h"\n#if FARSIDE_MUTANTS\nBad b;\n#endif\n')
        run = self.check()
        self.assertEqual(run.returncode, 1)
        self.assertIn("bad.h does not compile alone (with FARSIDE_MUTANTS=1)", run.stdout)


if __name__ == "__main__":
    unittest.main()
