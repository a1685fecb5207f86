#!/usr/bin/env bash
# Given all sorts of places that output can go to. When farside writes there.
# Expect colours and progress on terminals alone, NO_COLOR and LC_ALL=C to be fine, and an honest end when
# nothing can be written.
source "$(dirname "$0")/cli_common.sh"

# ---- no terminal, poor locales
for environment in LC_ALL=C LC_ALL=nosuch TERM=dumb COLUMNS=10; do
  ran="doctor with $environment"
  env "$environment" "$FARSIDE" doctor >"$out" 2>"$err" </dev/null
  status=$?
  expect_status 0
  expect_no_err
  grep -qF "$escape" "$out" && fail "escape sequences"
done
ran="check with an empty environment"
env -i "$FARSIDE" check --engine reference --seeds 1234 --clients 2 --ops 1 >"$out" 2>"$err" </dev/null
status=$?
expect_status 0
expect_out "1,234 (seeds 1 to 1234)"

# ---- readers that go away
ran="check --replay | head -1"
"$FARSIDE" check --engine reference --replay 17:faults 2>"$err" | head -1 >"$out"
status=${PIPESTATUS[0]}
[[ $status == 0 || $status == 141 || $status == 3 ]] || fail "exit code $status"
expect_out "run 17:faults"

# ---- nowhere to write to: not a success
ran="doctor >/dev/full"
"$FARSIDE" doctor >/dev/full 2>"$err"
status=$?
expect_status 3
expect_err "could not be written"
ran="doctor with stdout closed"
"$FARSIDE" doctor >&- 2>"$err"
status=$?
expect_status 3
expect_err "could not be written"
ran="check with stderr closed"
"$FARSIDE" check --engine nosuch >"$out" 2>&-
status=$?
expect_status 2

# ---- terminals, which some build environments do not have
need_terminal
unset NO_COLOR
run_on_terminal demo
expect_status 0
expect_out "$escape["
expect_out "checking  [" # the progress line
export NO_COLOR=1
run_on_terminal demo
expect_status 0
expect_out "checking  ["
grep -qF "$escape" "$out" && fail "escape sequences in spite of NO_COLOR"
run_on_terminal doctor
grep -qF "$escape" "$out" && fail "escape sequences in spite of NO_COLOR"

finish
