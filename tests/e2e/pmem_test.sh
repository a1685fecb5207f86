#!/usr/bin/env bash
# Durable pools, in files and at a memory node that is killed and comes back. (A kill proves restarts only: the
# memory of the machine survives it. Power cuts are simulated, in tests/pool/region.)
. "$(dirname "$0")/cli_common.sh"
cd "$scratch" || exit 1

# start_node NAME ARGUMENTS...: starts a node; its first line is in $ready, its process id in $node, its log
# in NAME.log.
started=()
start_node() {
  local name=$1
  shift
  "$FARSIDE" serve "$@" >"$name.out" 2>"$name.log" </dev/null &
  node=$!
  started+=("$node")
  until [[ -s $name.out ]]; do
    kill -0 "$node" 2>/dev/null || { fail "the node did not start: $(cat "$name.log")"; ready=; return 1; }
    sleep 0.02 # and look again
  done
  read -r ready <"$name.out"
}
# The URL with this scheme of the line in $ready.
url_of() { grep -oE "(^| )$1:[^ ]+" <<<"$ready" | tr -d ' '; }
end_all() {
  for pid in "${started[@]}"; do kill -KILL "$pid" 2>/dev/null; done
  rm -rf "$scratch"
}
trap end_all EXIT

refused="the pool is durable, and engine shard promises nothing about power cuts"

# ---- engines that cannot are refused before there is a file

run table create 'pmem:new.pool?size=64MiB' users --engine shard
expect_refusal "$refused"
run put 'pmem:new.pool?size=64MiB' users ada countess --create --engine shard
expect_refusal "$refused"
[[ ! -e new.pool ]] || fail "a pool was made for a table that was refused"

# ---- wrong usage

run serve --shm a --size 64MiB --pmem a.pool --file b.pool
expect_error "give either --file or --pmem"
run serve --shm a --size 64MiB --pmem a.pool --clients 1
expect_error "a durable pool has at least 2 client slots"
run serve --shm a --size 64MiB --pmem a.pool --hugepages on
expect_error "a file has the pages of its file system"

# ---- a node that is killed, and comes back with its file

start_node first --size 64MiB --pmem kept.pool --shm "$scratch/kept.sock" --listen tcp://127.0.0.1:0
tcp=$(url_of tcp)
grep -q "the pool is durable, by " first.log || fail "it does not say how the pool is durable: $(cat first.log)"
for url in "$tcp" "shm:$scratch/kept.sock"; do
  run table create "$url" users --engine shard
  expect_refusal "$refused"
done
durable=$(sed -nE 's/.*engines that do: ([a-z]+).*/\1/p' "$err")
if [[ -n $durable ]]; then
  run table create "$tcp" users --engine "$durable"
  expect_status 0
  for key in ada grace alan; do
    run put "$tcp" users "$key" "value of $key"
    expect_status 0
  done
fi
kill -KILL "$node"
wait "$node" 2>/dev/null
start_node second --pmem kept.pool --shm "$scratch/kept.sock" --listen "$tcp"
run status "$tcp"
expect_status 0
if [[ -n $durable ]]; then
  for key in ada grace alan; do
    run get "shm:$scratch/kept.sock" users "$key"
    expect_exactly "value of $key\n"
  done
fi
kill -TERM "$node"
wait "$node" || fail "a node that was asked to stop ended with $?"
run fsck pmem:kept.pool
expect_status 0
run get pmem:kept.pool nosuch ada
expect_refusal "to make it: farside table create pmem:kept.pool nosuch --engine ${durable:-shard}"

# ---- a pool is what it was made as

remember kept.pool
run fsck file:kept.pool
expect_refusal "kept.pool is a durable pool; open it as pmem:kept.pool"
run table create file:kept.pool users --engine shard
expect_refusal "open it as pmem:kept.pool"
run serve --shm "$scratch/a.sock" --file kept.pool
expect_refusal "kept.pool is a durable pool; serve it with --pmem kept.pool"
expect_unchanged
run table create 'file:plain.pool?size=4MiB' users --engine shard
expect_status 0
remember plain.pool
run status pmem:plain.pool
expect_refusal "plain.pool is not a durable pool, and does not become one; open it as file:plain.pool"
run serve --shm "$scratch/a.sock" --pmem plain.pool
expect_refusal "serve it with --file plain.pool, or import its tables into a new one"
expect_unchanged

finish
