#!/usr/bin/env bash
# Given no terminal and no configuration. When the demo runs.
# Expect its three parts, no control characters, and hints that are commands that work.
source "$(dirname "$0")/cli_common.sh"

run demo
expect_status 0
expect_no_err
expect_out "put moon = cheese"
expect_out "increment landings by 5"
expect_out "CRASHES"
expect_out "fences client 1"
expect_out "client 2 reads moon = rock"
expect_out "0 violations"
LC_ALL=C grep -q '[^[:print:]]' "$out" && fail "control characters on what is no terminal"
cp "$out" "$scratch/demo"
run demo
cmp -s "$out" "$scratch/demo" || fail "another story on the second run"

# The hints name the binary as it was called. Long searches are cut short.
mapfile -t hints < <(sed -n '/^What to try next/,$ p' "$scratch/demo" | grep -F "$FARSIDE" | sed 's/--seeds [0-9]*/--seeds 2/')
((${#hints[@]} >= 3)) || fail "few hints: ${hints[*]}"
for hint in "${hints[@]}"; do
  ran=$hint
  eval "$hint" >"$out" 2>"$err" </dev/null
  status=$?
  expect_status 0
done

finish
