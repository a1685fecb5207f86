#!/usr/bin/env bash
# Given a memory node. When benchmarks on it are stopped by a signal, in the middle of their load or run.
# Expect exit code 130, and a pool that is as it was: no table, no client, nothing leaked. A second signal
# ends a benchmark at once.
. "$(dirname "$0")/cli_common.sh"
cd "$scratch" || exit 1

"$FARSIDE" serve --quiet --size 4GiB --shm "bench-stop-$$" >ready 2>node.log </dev/null &
node=$!
trap 'kill -KILL "$node" 2>/dev/null; rm -rf "$scratch"' EXIT
until [[ -s ready ]]; do
  kill -0 "$node" 2>/dev/null || { fail "the node did not start: $(cat node.log)"; finish; }
  sleep 0.02 # and look again
done
url=shm:bench-stop-$$

# start_bench ARGUMENTS...: in the background, where shells ignore SIGINT, unless they are told not to.
# Returns when the benchmark has made its table.
start_bench() {
  ran="farside bench $*"
  env --default-signal=INT,TERM "$FARSIDE" bench --url "$url" --engine shard --clients 2 "$@" \
    >"$out" 2>"$err" &
  bench=$!
  until "$FARSIDE" table list "$url" 2>/dev/null | grep -q shard; do
    kill -0 "$bench" 2>/dev/null || { fail "the benchmark ended: $(cat "$err")"; return 1; }
    sleep 0.02 # and look again
  done
}

for signal in INT TERM; do
  for arguments in "--records 1000 --seconds 1000" "--records 100000000 --ops 10"; do
    # shellcheck disable=SC2086
    start_bench $arguments
    kill -"$signal" "$bench"
    wait "$bench"
    status=$?
    expect_status 130
    expect_err "stopped"
    run table list "$url"
    expect_exactly "no tables\n"
    run status "$url" --json
    expect_json "o['clients'] == []"
  done
done
run fsck "$url"
expect_status 0
expect_out "clean"

# The benchmark has noted the first signal when it begins to drop its table; the second one may come before or
# after that, so that all that is sure is that it ends.
start_bench --records 1000 --seconds 1000
kill -INT "$bench"
kill -INT "$bench"
wait "$bench"
status=$?
[[ $status == 130 ]] || fail "exit code $status after two signals" # noted and in order, or dead by SIGINT
finish
