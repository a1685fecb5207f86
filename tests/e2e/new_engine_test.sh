#!/usr/bin/env bash
# Given a copy of the source tree. When ./dev new-engine makes an engine in it, and the copy is built.
# Expect that the engine passes its own tests, the conformance suite and 100 seeds of the checker without an
# edit.
#
# It compiles a second tree, most of it from ccache, so it runs only if FARSIDE_LONG is set.
source "$(dirname "$0")/cli_common.sh"

[[ -n ${FARSIDE_LONG:-} ]] || { echo "skipped: takes minutes; set FARSIDE_LONG=1 to run it"; exit 77; }
[[ -z ${FARSIDE_SANITIZE:-} ]] || { echo "skipped: only without sanitizers"; exit 77; }

top=${FARSIDE_SOURCE:-$(dirname "$0")/../..}
copy=$scratch/farside
mkdir "$copy"
(cd "$top" && tar -c --exclude=./build --exclude=./.git --exclude=__pycache__ .) | tar -x -C "$copy" || fail "cannot copy $top"
cd "$copy" || exit 1

# Runs a step of the way; its output is shown only if it fails.
step() {
  local start=$SECONDS
  "$@" >"$out" 2>&1 || {
    tail -n 50 "$out"
    fail "failed: $*"
    finish
  }
  echo "$((SECONDS - start)) s: $*"
}

step python3 -B tools/new_engine/new_engine.py sample
step cmake --preset release -DFARSIDE_BUILD_TESTS=ON -DFARSIDE_WERROR=ON
step cmake --build build/release --target farside_binary farside_conformance_tests farside_crash_tests \
  farside_layout_tests farside_simulation_tests farside_mutants_tests
step build/release/farside check --engine sample --seeds 100 --crash
step build/release/tests/farside_conformance_tests --gtest_filter='*sample*'
for kind in crash layout simulation mutants; do
  step "build/release/tests/farside_${kind}_tests" --gtest_filter='*Sample*'
done

finish
