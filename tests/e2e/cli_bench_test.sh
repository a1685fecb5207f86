#!/usr/bin/env bash
# Given the binary. When engines are measured with small runs on every fabric, or asked for what makes no
# sense. Expect the JSON that tools rely on, no error in it, and one line and exit code 2 for what is wrong.
source "$(dirname "$0")/cli_common.sh"

small=(--records 2000 --ops 5000 --warmup 500 --option buckets=1000)

# ---- the JSON, field by field
kinds='{"search", "insert", "update", "delete", "scan"}'
for fabric in embedded sim; do
  for workload in a b c d f; do
    run bench --engine reference --fabric "$fabric" --workload "$workload" "${small[@]}" --clients 3 --depth 2 --json
    expect_status 0
    expect_no_err
    expect_json '{"engine", "fabric", "workload", "records", "ops", "clients", "depth", "seconds", "ops_per_second",
        "latency_us", "trips_per_op", "bytes_read_per_op", "bytes_written_per_op", "cas_failed_per_op", "errors",
        "commit", "model", "of_raw", "load", "raw", "far_bytes_per_record", "client_bytes"} <= set(o)' \
      "(o['engine'], o['fabric'], o['workload']) == ('reference', '$fabric', '$workload')" \
      "(o['records'], o['ops'], o['clients'], o['depth']) == (2000, 5000, 3, 2)" \
      "o['seconds'] > 0 and abs(o['ops'] / o['seconds'] - o['ops_per_second']) < 1e-6 * o['ops_per_second']" \
      "set(o['latency_us']) == {'p50', 'p99', 'p999', 'max'}" \
      "0 < o['latency_us']['p50'] <= o['latency_us']['p99'] <= o['latency_us']['p999'] <= 1.02 * o['latency_us']['max']" \
      "set(o['trips_per_op']) == {'index', 'end_to_end'}" \
      "all(set(trips) == $kinds for trips in o['trips_per_op'].values())" \
      "o['trips_per_op']['index']['search'] >= 1 and 2 <= o['trips_per_op']['end_to_end']['search'] < 2.1" \
      "o['trips_per_op']['end_to_end']['scan'] is None" \
      "o['errors'] == 0 and o['first_problem'] is None" \
      "o['load']['ops'] == 2000 and o['raw']['ops'] == 5000" \
      "abs(o['of_raw'] - o['ops_per_second'] / o['raw']['ops_per_second']) < 1e-9" \
      "o['raw']['options']['bucket'] == '512' and o['raw']['options']['block'] == '64'" \
      "(o['model'] != {} and o['utilisation'] != {}) == (o['fabric'] == 'sim')" \
      "abs(o['far_bytes_per_record']['blocks'] - 64) < 1e-9" \
      "sum(row['count'] for row in o['latency_us_by_action'].values()) == 5000"
  done
done

# ---- scans: the reference table looks through all of it
for fabric in embedded sim; do
  run bench --engine reference --fabric "$fabric" --workload e --records 300 --ops 500 --warmup 50 --option buckets=40 \
    --clients 2 --depth 2 --key-size 8 --value-size 8 --json
  expect_status 0
  expect_no_err
  expect_json "o['workload'] == 'e' and o['ops'] == 500 and o['errors'] == 0" \
    "o['trips_per_op']['index']['scan'] >= 40 and o['trips_per_op']['end_to_end']['scan'] >= 340" \
    "o['trips_per_op']['end_to_end']['search'] is None and o['trips_per_op']['end_to_end']['insert'] >= 2" \
    "set(o['latency_us_by_action']) == {'insert', 'scan'}" \
    "440 <= o['latency_us_by_action']['scan']['count'] <= 500 and 30 <= o['records_per_scan'] <= 60" \
    "o['raw'] is None and o['of_raw'] is None"
done

# ---- virtual time does not depend on the machine
sim=(bench --engine reference --fabric sim --workload a "${small[@]}" --clients 8 --compute-nodes 2 --nodes 2 --json)
run "${sim[@]}"
expect_status 0
cp "$out" "$scratch/once"
run "${sim[@]}"
cmp -s "$out" "$scratch/once" || fail "two runs of one seed differ"
run "${sim[@]}" --seed 2
cmp -s "$out" "$scratch/once" && fail "two seeds are the same"

# ---- other sizes, other distributions, a time instead of a number
run bench --engine reference --fabric sim "${small[@]}" --key-size 20 --value-size 100 --distribution uniform --no-raw --json
expect_status 0
expect_json "(o['key_size'], o['value_size'], o['distribution']) == (20, 100, 'uniform')" \
  "o['raw'] is None and o['of_raw'] is None" "abs(o['far_bytes_per_record']['blocks'] - 192) < 1e-9"
run bench --engine reference --fabric sim --records 2000 --option buckets=1000 --seconds 0.002 --json
expect_status 0
expect_json "abs(o['seconds'] - 0.002) < 0.0001" "o['ops'] > 0"
run bench --engine reference --workload load --records 3001 --option buckets=1000 --clients 2 --json
expect_status 0
expect_json "o['ops'] == 3001 and o['load'] is None" "o['trips_per_op']['end_to_end']['insert'] >= 2"
run bench --engine raw --fabric sim --workload c --records 2000 --ops 5000 --option records=2000 --option trips=1 --json
expect_status 0
expect_json "o['trips_per_op']['end_to_end']['search'] == 1" "o['of_raw'] is None and o['load'] is None"

# ---- the text
run bench --engine reference --fabric sim --workload a "${small[@]}"
expect_status 0
expect_no_err # no progress line without a terminal
for word in 'sim (times are virtual)' 'ops/s' 'run of raw' 'read' 'update' 'trips per operation' 'maintenance' \
  'far memory' 'of raw' 'round_trip 2,000 ns' 'busiest' 'errors        0'; do
  expect_out "$word"
done

# ---- what makes no sense
run bench
expect_error "--engine is missing; there is: "
run bench --engine nosuch
expect_error "there is no engine 'nosuch'"
run bench --engine reference --option nosuch=1
expect_error "no option 'nosuch'"
run bench --engine shard --workload e
expect_error "--workload: e scans ranges of keys, and the engine shard keeps them in no order; take an ordered one: "
run bench --engine raw --option records=100 --workload e
expect_error "and the engine raw keeps them in no order"
run bench --engine reference --workload z
expect_error "there is no workload 'z'; there is: load, a, b, c, d, e, f"
run bench --engine reference --distribution normal
expect_error "there is no distribution 'normal'; there is: uniform, zipfian, latest"
run bench --engine reference --fabric verbs
expect_error "there is no fabric 'verbs' to measure; there is: embedded, shm, tcp, sim"
run bench --engine reference --ops 5 --seconds 1
expect_error "--ops and --seconds"
run bench --engine reference --workload load --seconds 1
expect_error "give --records"
run bench --engine reference --compute-nodes 2 --clients 2
expect_error "--compute-nodes is for --fabric sim"
run bench --engine reference --fabric sim --compute-nodes 2
expect_error "fewer clients than that"
run bench --engine reference --size 1G
expect_error "--size: \"1G\" is not a size"
for bad in 0 -1 abc 1e3 inf nan ''; do
  run bench --engine reference --seconds "$bad"
  expect_error "--seconds: '$bad' is not a number of seconds"
done
for bound in 'records 0 1000000001' 'ops 0 1000000000001' 'clients 0 1025' 'depth 0 1025' 'key-size 7 1025' \
  'value-size -1 1048577' 'nodes 0 65' 'compute-nodes 0 257'; do
  read -r name below above <<<"$bound"
  for bad in "$below" "$above"; do
    run bench --engine reference "--$name" "$bad"
    expect_error "--$name: '$bad' is not a whole number from"
  done
done
run check --engine raw
expect_error "raw only measures the fabric"
run table create embedded: t --engine raw
expect_error "raw only measures the fabric"

# ---- what does not work out
run bench --engine reference --records 2000 --option buckets=4
expect_refusal "the bucket of this key is full"
run bench --engine reference --records 2000 --option buckets=1000 --value-size 10000 --size 4MiB
expect_refusal "give it more with --size"

# ---- a terminal gets a progress line, but not with --json
need_terminal
slow=(bench --engine reference --option buckets=20000 --workload a --ops 1500000 --no-raw)
run_on_terminal "${slow[@]}"
expect_status 0
expect_out "run of reference  ["
run_on_terminal "${slow[@]}" --json
expect_status 0
grep -q 'operations' "$out" && fail "a progress line with --json"

finish
