#!/usr/bin/env bash
# Given docs/cli.md. When every command in it is run.
# Expect that it exists and knows its options. Long searches are cut short, so the numbers are not compared.
source "$(dirname "$0")/cli_common.sh"

page=${FARSIDE_SOURCE:-$(dirname "$0")/../..}/docs/cli.md
mapfile -t commands < <(sed -n '/^```console/,/^```$/ s/^\$ //p' "$page" | sed 's/--seeds [0-9]\{3,\}/--seeds 3/')
((${#commands[@]} >= 5)) || fail "few commands in $page"
cd "$scratch" || exit 1 # some of them make a pool
PATH=${FARSIDE%/*}:$PATH
for command in "${commands[@]}"; do
  ran=$command
  eval "$command" >"$out" 2>"$err" </dev/null # for its quotes and pipes
  status=$?
  case $command in
    *--mutant* | *' get '*bob) expect_status 1 ;;
    *'import'*wrong.jsonl | *'people --prefix'*) expect_status 3 ;;
    *'--seeds 0') expect_status 2 ;;
    *) expect_status 0 ;;
  esac
done

finish
