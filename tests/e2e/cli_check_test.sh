#!/usr/bin/env bash
# Given an engine that is right. When `farside check` searches it for violations, or replays a run of it.
# Expect none, numbers that add up, and the same bytes on every run.
source "$(dirname "$0")/cli_common.sh"

fields='["engine", "seeds", "histories", "operations", "verbs", "crash_points", "power_cuts", "violations", "undecided",
  "first_violation", "first_undecided"]'

# ---- a campaign
run check --engine reference --seeds 3 --crash --json
expect_status 0
expect_no_err
expect_json "list(o) == $fields" \
  'o["engine"] == "reference" and o["seeds"] == 3' \
  'o["violations"] == 0 and o["first_violation"] is None' \
  'o["undecided"] == 0 and o["first_undecided"] is None' \
  'o["crash_points"] > 1000 and o["histories"] == o["crash_points"] + 6' \
  'o["operations"] > o["histories"] and o["verbs"] > o["operations"]'
cp "$out" "$scratch/first"
run check --engine reference --seeds 3 --crash --json
cmp -s "$out" "$scratch/first" || fail "another result on the second run"

run check --engine reference --seeds 7 --first-seed 40
expect_status 0
expect_no_err
for line in 'engine +reference' 'seeds +7 \(seeds 40 to 46\)' 'histories +7' 'operations +[0-9,]+' 'verbs +[0-9,]+' \
  'crash points +0 .*' 'violations +0' 'undecided +0' 'verbs/second +[0-9,]+ .*'; do
  grep -qE "^$line\$" "$out" || fail "no line '$line': $(cat "$out")"
done

# ---- all options together
run check --engine reference --seeds 2 --crash --clients 6 --ops 20 --keys 12 --option buckets=2 --option backoff_us=5 --json
expect_status 0
expect_json 'o["violations"] == 0'
run check --engine reference --seeds 1 --clients 1 --ops 1 --keys 1 --json
expect_status 0
expect_json 'o["operations"] == 7'  # one, and six of the auditor
run check --engine reference --seeds 2 --trace --json
expect_json 'o["trace"] == []'

# ---- replays
for name in 17 17:faults 3:1:crash-after 3:1:crash-before 4:2:lose-completion 5:3:sleep-after; do
  run check --engine reference --replay "$name"
  expect_status 0
  expect_no_err
  expect_out "run $name of reference:"
  expect_out "linearizable"
  expect_out "client 1  posts trip 1: #0"
  cp "$out" "$scratch/first"
  run check --engine reference --replay "$name"
  cmp -s "$out" "$scratch/first" || fail "another replay on the second run"
done
run check --engine reference --replay 3:80:crash-after
expect_out "CRASHES"
expect_out "fences client 1"

run check --engine reference --replay 3:1:crash-after --json
expect_status 0
expect_json "list(o) == $fields" \
  '(o["seeds"], o["histories"], o["crash_points"], o["violations"]) == (1, 1, 1, 0)'
run check --engine reference --replay 3:1:crash-after --trace --json
expect_json "list(o) == $fields + ['trace'] and any('CRASHES' in line for line in o['trace'])"

run check --engine reference --replay 3:1000:crash-after
expect_status 0
expect_out "the fault did not happen: the run has verbs 0 to"

# ---- so many clients on one key that the checker gives up: neither fine nor a violation
crowd=(check --engine reference --clients 64 --ops 20 --keys 1)
run "${crowd[@]}" --seeds 1 --json
expect_status 1
expect_json '(o["histories"], o["violations"], o["undecided"]) == (1, 0, 1)' 'o["first_violation"] is None' \
  'o["first_undecided"]["run"] == "1" and "gave up" in o["first_undecided"]["problem"]'
replay=$(json_field 'o["first_undecided"]["replay"]')
run "${crowd[@]}" --seeds 1
expect_status 1
expect_out "first undecided: run 1"
expect_out "no proof of a bug"
expect_out "$replay"
ran=$replay
eval "$replay" >"$out" 2>"$err" </dev/null
status=$?
expect_status 1
expect_out "UNDECIDED: key k0"

finish
