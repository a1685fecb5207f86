#!/usr/bin/env bash
# Given the experiments of the papers. When they are listed, and run at small sizes.
# Expect rows of which each says what the paper has, what we have and whether the rule holds; an exit code
# that agrees.
source "$(dirname "$0")/cli_common.sh"

# ---- the list
run paper list
expect_status 0
expect_no_err
expect_out "shard-table3"
run paper list --json
expect_status 0
expect_json "set(o) == {'names'}" \
  "{'shard-table3', 'shard-table4', 'shard-levels', 'shard-figure13', 'shard-figure16', 'shard-figure18'} <= set(o['names'])" \
  "{'chime-table1', 'chime-figure14', 'chime-figure15', 'chime-figure16', 'chime-figure19', 'chime-speculation', 'chime-sherman'} <= set(o['names'])" \
  "{'sephash-trips', 'sephash-table1', 'sephash-table2', 'sephash-table3', 'sephash-even'} <= set(o['names'])" \
  "{'sephash-figure' + n for n in ('13', '16', '18', '19', '20', '21', '22')} <= set(o['names'])" \
  "{'nessie-' + n for n in ('puts', 'migration', 'reads', 'load', 'ycsb', 'growth')} <= set(o['names'])" \
  "{'continuity-table1', 'continuity-lookup', 'continuity-figure18'} <= set(o['names'])"
mapfile -t names < <(json_field '"\n".join(o["names"])')

# ---- every experiment, small. What is promised is promised of the usual size: here rules may be broken, but
# never in silence.
for name in "${names[@]}"; do
  run paper "$name" --scale 1 --json
  expect_no_err
  [[ $status == 0 || $status == 1 ]] || fail "exit code $status"
  expect_json "o['name'] == '$name'" "len(o['rows']) > 0" \
    "all({'metric', 'paper', 'ours', 'rule', 'holds'} <= set(row) for row in o['rows'])" \
    "all(row['paper'] is None or isinstance(row['paper'], float) for row in o['rows'])" \
    "all(isinstance(row['ours'], (int, float)) and isinstance(row['holds'], bool) for row in o['rows'])" \
    "all(row['rule'] == 'reported' or row['rule'].split()[0] in ('<', '>', '<=', '>=') for row in o['rows'])" \
    "all(row['holds'] for row in o['rows'] if row['rule'] == 'reported')" \
    "len({row['metric'] for row in o['rows']}) == len(o['rows'])" \
    "(o['holds'], $status) in ((True, 0), (False, 1))" \
    "o['holds'] == all(row['holds'] for row in o['rows'])" \
    "o['scale_percent'] == 1 and o['full'] is False"
done

# ---- counts and virtual times do not depend on the machine
run paper shard-figure18 --scale 2 --json
cp "$out" "$scratch/once"
run paper shard-figure18 --scale 2 --json
cmp -s "$out" "$scratch/once" || fail "two runs differ"

# ---- a rule that is broken is said aloud
run paper chime-sherman --scale 5
expect_status 1
expect_no_err
for words in 'c, times the B+ tree' '>= 4.30 x' 'DOES NOT HOLD' 'What was used most'; do expect_out "$words"; done

# ---- the text
run paper chime-table1 --scale 5
expect_status 0
expect_no_err
expect_out "scan of 100"
run paper sephash-trips --scale 10
expect_status 0
expect_no_err
for words in 'put that does not merge' 'a merge of new keys' 'a split' 'What binds'; do
  expect_out "$words"
done
run paper sephash-figure13 --scale 1
expect_status 0
expect_out "p99 of put by clients"
expect_out " us "
run paper nessie-puts --scale 10
expect_status 0
expect_no_err
for words in 'load 0.9, put of a new key' "the paper's algorithms, closest reading" 'keys without a place'; do
  expect_out "$words"
done
run paper continuity-table1 --scale 10
expect_status 0
expect_no_err
for words in 'insert, lines flushed' 'update, lines flushed, not fewer' '16 + 64 B, lines of the block'; do
  expect_out "$words"
done
run paper continuity-figure18 --json
expect_status 0
expect_no_err
expect_json "o['holds'] and o['scale_percent'] == 100" \
  "all(row['ours'] == 0 for row in o['rows'] if row['metric'].endswith('at which table and model differ'))" \
  "sum(row['metric'].endswith('at which table and model differ') for row in o['rows']) == 3" \
  "[row['ours'] >= 0.70 for row in o['rows'] if row['metric'] == '1/10, model, mean load'] == [True]" \
  "[row['ours'] >= 0.60 for row in o['rows'] if row['metric'] == '1/10, 1,000,000 buckets (model)'] == [True]"
run paper continuity-lookup --scale 10
expect_status 0
expect_out '560 B'
run paper shard-levels --scale 10
expect_status 0
expect_no_err
for words in 'shard-levels: where records are' 'metric' 'paper' 'ours' 'rule' '> 97 %' 'holds'; do expect_out "$words"; done
grep -qF 'DOES NOT HOLD' "$out" && fail "a rule is broken: $(cat "$out")"
run paper shard-figure16 --scale 2
expect_out "a resize is announced"
LC_ALL=C grep -q '[^[:print:]]' "$out" && fail "more than plain text on what is no terminal"

# ---- what makes no sense
run paper
expect_error "NAME is missing"
run paper nosuch
expect_error "there is no experiment 'nosuch'; 'farside paper list' has them all"
run paper shard-levels stray
expect_error "'stray' is one word too many"
for bad in 0 -1 10001 abc; do
  run paper shard-levels --scale "$bad"
  expect_error "--scale: '$bad' is not a whole number from 1 to 10000"
done

# ---- a terminal gets ticks, and a plot of blocks if it can draw them
need_terminal
LC_ALL=C.UTF-8 run_on_terminal paper shard-levels --scale 10
expect_status 0
expect_out "✓"
LC_ALL=C run_on_terminal paper shard-levels --scale 10
expect_status 0
expect_out "holds"
finish
