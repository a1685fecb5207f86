#!/usr/bin/env bash
# Given no terminal and no configuration. When the demo runs.
# Expect its five parts, no control characters, the same story every time, and hints that are commands that
# work.
source "$(dirname "$0")/cli_common.sh"

run demo
expect_status 0
expect_no_err
for words in '1. A table in far memory' 'insert moon = cheese' 'update moon = rock' 'increment landings by 5' \
  'a cursor' '3 records' 'delete moon' \
  '2. It grows while it is used' '150,000 records; doubled' 'of the steady rate' \
  '3. The engines side by side' 'shard' 'chime' 'sephash' 'nessie' 'continuity' 'reference' 'raw' \
  '4. A client dies' 'CRASHES' 'fences client 1' 'client 2 reads moon = rock' \
  '5. A search for bugs' '0 violations' 'What to try next'; do
  expect_out "$words"
done
LC_ALL=C grep -q '[^[:print:]]' "$out" && fail "control characters on what is no terminal"
cp "$out" "$scratch/demo"
run demo
cmp -s "$out" "$scratch/demo" || fail "another story on the second run"

# The hints name the binary as it was called. Long searches are cut short.
cd "$scratch" || exit 1 # one of them makes a pool
mapfile -t hints < <(sed -n '/^What to try next/,$ p' "$scratch/demo" | grep -F "$FARSIDE" | sed 's/--seeds [0-9]*/--seeds 2/')
((${#hints[@]} >= 3)) || fail "few hints: ${hints[*]}"
for hint in "${hints[@]}"; do
  ran=$hint
  eval "$hint" >"$out" 2>"$err" </dev/null
  status=$?
  expect_status 0
done

# A terminal gets a progress bar, which is gone when results are printed: what stays on the screen is what a
# file gets.
need_terminal
LC_ALL=C NO_COLOR=1 run_on_terminal demo
expect_status 0
expect_out "run of chime  ["
diff <(sed 's/ *$//' "$scratch/demo") <(screen) >"$scratch/difference" ||
  fail "the screen differs from what a file gets: $(head -c 1000 "$scratch/difference")"

# And a plot of more than '#' if it can draw it.
LC_ALL=C.UTF-8 run_on_terminal demo
expect_status 0
expect_out "load of shard  ["
expect_out "█"
finish
