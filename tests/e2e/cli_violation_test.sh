#!/usr/bin/env bash
# Given engines with a planted bug. When `farside check` searches them for violations.
# Expect exit code 1, the operations that prove it, and a command that shows the same violation again.
source "$(dirname "$0")/cli_common.sh"

mutants=${FARSIDE%/*}/farside-mutants
[[ -x $mutants ]] || {
  echo "there is no $mutants"
  exit 1
}

check() { run_program "$mutants" check --engine reference "$@"; }

# Runs the replay command that the last JSON gave, with more arguments.
replay() {
  local command
  command=$(json_field 'o["first_violation"]["replay"]')
  ran="$command $*"
  eval "$command $*" >"$out" 2>"$err" </dev/null
  status=$?
}

# ---- without a mutant it is the same program
check --seeds 2 --crash --json
expect_status 0
expect_json 'o["violations"] == 0'
check --mutant nosuch
expect_error "there is no mutant 'nosuch'; there is: kit/"

# ---- a client that never takes over a lock
check --seeds 1 --crash --mutant reference/no-takeover
expect_status 1
expect_no_err
expect_out "first violation: run 1:"
expect_out "kContended"
expect_out "--mutant reference/no-takeover --replay 1:"

check --seeds 1 --crash --mutant reference/no-takeover --json
expect_status 1
expect_json 'o["violations"] > 0 and set(o["first_violation"]) >= {"seed", "replay"} and o["first_violation"]["seed"] == 1'
replay --json
expect_status 1
expect_json '(o["histories"], o["violations"]) == (1, 1) and "kContended" in o["first_violation"]["problem"]'

# ---- histories that are not linearizable: the proof is short
for mutant in newest-image-wins unknown-reported-as-refused; do
  check --seeds 1 --crash --mutant "reference/$mutant"
  expect_status 1
  expect_out "is not linearizable: nothing explains event"
  expect_out "witness"
  [[ $(sed -n '/^witness/,/^replay/p' "$out" | grep -c 'client') -le 5 ]] || fail "a long witness: $(cat "$out")"

  check --seeds 1 --crash --mutant "reference/$mutant" --json
  expect_status 1
  problem=$(json_field 'o["first_violation"]["problem"]')
  replay
  expect_status 1
  expect_no_err
  expect_out "VIOLATION: $problem"
  expect_out "witness"
  expect_out "trace"
  cp "$out" "$scratch/first"
  check --seeds 1 --crash --mutant "reference/$mutant" --json
  replay
  cmp -s "$out" "$scratch/first" || fail "another replay on the second run"
done

# ---- the replay command has_coalesced every option that the run depends on
check --seeds 50 --clients 5 --ops 6 --keys 2 --option buckets=1 --option backoff_us=7 --mutant reference/commit-together-with-write --json
expect_status 1
for option in '--clients 5' '--ops 6' '--keys 2' '--option buckets=1' '--option backoff_us=7'; do
  expect_json "'$option ' in o['first_violation']['replay']"
done
problem=$(json_field 'o["first_violation"]["problem"]')
replay
expect_status 1
expect_out "VIOLATION: $problem"

# ---- with --trace, the verbs of the first violation
check --seeds 1 --crash --trace --mutant reference/newest-image-wins
expect_status 1
expect_out "client 1  posts trip 1: #0"
check --seeds 1 --crash --trace --json --mutant reference/newest-image-wins
expect_json 'len(o["trace"]) > 10'

finish
