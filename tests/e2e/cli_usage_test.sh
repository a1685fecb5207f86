#!/usr/bin/env bash
# Given the binary. When it is asked for help, or called in a wrong way.
# Expect help with an example that works for every command; exit code 2 and one line that names the mistake.
source "$(dirname "$0")/cli_common.sh"
cd "$scratch" || exit 1 # examples make a pool

# ---- what one may ask for
run --version
expect_status 0
grep -qE '^farside [0-9]+\.[0-9]+\.[0-9]+ \(commit ([0-9a-f]+|unknown)\)$' "$out" || fail "not a version: $(cat "$out")"
[[ $(wc -l <"$out") == 1 ]] || fail "not one line"

for way in --help -h help; do
  run "$way"
  expect_status 0
  expect_no_err
  for word in Usage: bench check completion del demo doctor export fsck get help import paper put scan status table; do expect_out "$word"; done
done

commands=(bench check completion demo doctor help paper table 'table create' 'table list' 'table show' 'table drop' fsck
  put get scan export import status del)
echo "a value" >README.md # one of the examples puts it
for command in "${commands[@]}"; do
  read -r -a names <<<"$command"
  run help "${names[@]}"
  cp "$out" "$scratch/by_help"
  run "${names[@]}" --help
  expect_status 0
  expect_no_err
  expect_out "Usage: farside $command"
  expect_out "Example"
  cmp -s "$out" "$scratch/by_help" || fail "'help $command' says something else than '$command --help'"

  # The examples are commands that work; long searches are cut short.
  mapfile -t examples < <(sed -n '/^Example/,$ s/^  farside //p' "$out" | sed 's/--seeds [0-9]*/--seeds 2/')
  ((${#examples[@]} > 0)) || fail "no example"
  for example in "${examples[@]}"; do
    ran="farside $example"
    eval "\"\$FARSIDE\" $example" >"$out" 2>"$err" </dev/null # for its quotes, and for files that it names
    status=$?
    expect_status 0
  done
done

# ---- nothing asked: the help, but not as a result
run
expect_status 2
expect_no_out
expect_err "Usage: farside"

# ---- unknown commands and options
run nosuch
expect_error "there is no command 'nosuch'; there is: bench, check, completion, del, demo, doctor, export, fsck, get, help, import, paper, put, scan, serve, status, table"
run --nosuch
expect_error "there is no option '--nosuch'"
run help nosuch
expect_error "there is no command 'nosuch'"
run help table nosuch
expect_error "farside help: there is no command 'nosuch'; there is: create, list, show, drop"
run help check nosuch
expect_error "'nosuch' is one word too many"
run check --engine reference --nosuch
expect_error "farside check: there is no option '--nosuch'"
run check --engine reference stray
expect_error "'stray' is one word too many"
run doctor demo
expect_error "'demo' is one word too many"
run demo --json
expect_error "there is no option '--json'"
run doctor --json=maybe
expect_error "--json takes no value"
run check --engine reference --mutant reference/no-takeover
expect_error "there is no option '--mutant'"

# ---- engines
run check
expect_error "--engine is missing; there is: "
run check --engine
expect_error "--engine needs a value"
run check --engine nosuch
expect_error "there is no engine 'nosuch'; there is: "
run check --engine $'no\nsuch'
expect_error "there is no engine 'no\\x0asuch'"

# ---- numbers
for bad in -1 0 abc 99999999999999999999 1000000001 1.5 1e3 0x10 '' ' 1' '+1'; do
  run check --engine reference --seeds "$bad"
  expect_error "--seeds: '$bad' is not a whole number from 1 to 1000000000"
done
run check --engine reference --seeds
expect_error "--seeds needs a value"
for bound in 'clients 0 65' 'ops 0 1001' 'keys 0 13' 'first-seed -1 1000000000000000001'; do
  read -r name below above <<<"$bound"
  run check --engine reference "--$name" "$below"
  expect_error "--$name: '$below' is not a whole number from"
  run check --engine reference "--$name" "$above"
  expect_error "--$name: '$above' is not a whole number from"
done
run check --engine reference --seeds 010 --json
expect_json 'o["seeds"] == 10'
run check --engine reference --seeds 99 --seeds 3 --json
expect_json 'o["seeds"] == 3'

# ---- runs
for bad in xyz 5: :5 5:faults: 5:x:crash-after 5:1:explode 5:1 -1 '' 99999999999999999999 '5:faults '; do
  run check --engine reference --replay "$bad"
  expect_error "--replay: '$bad': expected a run such as 17"
done

# ---- options of an engine
for bad in foo =1 ''; do
  run check --engine reference --option "$bad"
  expect_error "--option: '$bad' is not of the form name=value"
done
run check --engine reference --option nosuch=1
expect_error "no option 'nosuch'"
for bad in -1 0 abc '' 1000001; do
  run check --engine reference --option "buckets=$bad"
  expect_error "buckets=$bad: expected a number"
done
run check --engine reference --option buckets=1 buckets=2
expect_error "'buckets=2' is one word too many"
run check --engine reference --option buckets=1000000
expect_error "this table needs 512000512 bytes"

finish
