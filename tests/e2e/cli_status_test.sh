#!/usr/bin/env bash
# Given pools in files. When their status is asked for.
# Expect nodes, clients and tables as they are, and no byte of the file changed.
source "$(dirname "$0")/cli_common.sh"
cd "$scratch" || exit 1

"$FARSIDE" put 'file:a.pool?size=4MiB' users ada countess --create >/dev/null
"$FARSIDE" put file:a.pool users grace admiral
"$FARSIDE" table create file:a.pool orders --engine reference --option buckets=8 >/dev/null
remember a.pool

run status --records file:a.pool
expect_status 0
expect_no_err
expect_out "pool  file:a.pool"
expect_out "0 of 64  2 of 64"
expect_out "no clients"
expect_out "users   shard            2"
expect_out "orders  reference        0"
run status --records --json file:a.pool
expect_status 0
expect_json 'o["url"] == "file:a.pool" and not o["damaged"] and o["counted"]' 'len(o["nodes"]) == 1 and o["clients"] == []' \
  'o["nodes"][0]["used"] + o["nodes"][0]["free"] == o["nodes"][0]["bytes"] == 4 << 20' \
  '[(t["name"], t["records"]) for t in o["tables"]] == [("orders", 0), ("users", 2)]' \
  'o["tables"][0]["options"] == {"buckets": "8"} and o["tables"][1]["block_bytes"] > 0'
# By default no table is walked.
run status file:a.pool
expect_status 0
expect_out "users   shard      buckets=1"
expect_out "records were not counted; --records walks the tables to count them"
run status --json file:a.pool
expect_status 0
expect_json 'not o["counted"] and [t["name"] for t in o["tables"]] == ["orders", "users"]' \
  'all(t[f] is None for t in o["tables"] for f in ("records", "slots", "index_bytes", "block_bytes", "why"))'
expect_unchanged

# ---- a process that ended without leaving
mkfifo pipe
"$FARSIDE" import file:a.pool users <pipe >/dev/null 2>&1 &
importer=$!
exec 8>pipe
python3 -c 'for i in range(1500): print("{\"key\":\"k%d\",\"value\":\"v\"}" % i)' >&8
# It has begun when the file is locked.
for ((i = 0; i < 600; ++i)); do
  run status file:a.pool
  ((status == 3)) && break
  python3 -c 'import time; time.sleep(0.05)'
done
expect_refusal "a.pool is in use by another process"
kill -KILL "$importer"
wait "$importer" 2>/dev/null
exec 8>&-
remember a.pool
run status file:a.pool
expect_status 0
expect_out "fenced"
expect_out "it has gone, and the next client of the pool clears up"
run status --json file:a.pool
expect_json 'len(o["clients"]) == 2 and {c["state"] for c in o["clients"]} == {"fenced"}' 'o["nodes"][0]["deaths"] == 2'
expect_unchanged
run get file:a.pool users ada
expect_status 0
expect_unchanged
run put file:a.pool users ada baroness
expect_status 0
run status --json file:a.pool
expect_json 'o["clients"] == []'
run fsck --json file:a.pool
expect_json 'o["ok"] and o["notes"] == 0'

# ---- what is no pool
run status nosuch
expect_error '"nosuch" is not a pool URL'
run status
expect_error "URL is missing"
run status file:nosuch.pool
expect_refusal "nosuch.pool does not exist"
run status file:a.pool --watch 0
expect_error "--watch: '0' is not a number of seconds"
run status embedded:
expect_status 0
expect_out "made for this look, and empty: an embedded pool lives only as long as its process"
run status --json 'embedded:?size=4MiB&nodes=3'
expect_json 'len(o["nodes"]) == 3'

finish
