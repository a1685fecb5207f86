#!/usr/bin/env bash
# Given pools in files, sound and unsound. When fsck looks at them.
# Expect every byte to be accounted for, what is wrong in one line each, and no byte of the file changed.
source "$(dirname "$0")/cli_common.sh"
cd "$scratch" || exit 1

"$FARSIDE" table create 'file:good.pool?size=4MiB' users --engine reference --option buckets=64 >/dev/null
"$FARSIDE" table create file:good.pool orders --engine reference >/dev/null
remember good.pool

# ---- clean
run fsck file:good.pool
expect_status 0
expect_no_err
expect_out "pool          good.pool, 4MiB"
expect_out "users (reference), 0 keys, 40,960 bytes"
expect_out "all                  4,194,304  100.0 %"
expect_out "clean: every byte is accounted for"
run fsck --json file:good.pool
expect_status 0
expect_json 'o["ok"] and o["complete"] and o["findings"] == []' \
  '(o["damages"], o["leaks"], o["notes"]) == (0, 0, 0)' \
  'sum(v for k, v in o["bytes"].items() if k != "all") == o["bytes"]["all"] == 4 << 20' \
  'sum(t["bytes"] for t in o["tables"]) == o["bytes"]["reachable"]' \
  '[n["bytes"] for n in o["nodes"]] == [o["bytes"]]'
metadata=$(json_field 'o["bytes"]["metadata"]')
run table show --json file:good.pool orders
root=$(json_field 'o["roots"][0]["offset"]')
bucket=$(((root + 511) / 512 * 512))
chunk=$((metadata + (root - metadata) / 8192 * 8192))

# Records of every engine, as each stores them.
for engine in shard chime sephash nessie continuity reference; do
  "$FARSIDE" table create "file:records.pool?size=16MiB" "$engine" --engine "$engine" >/dev/null
  for i in 1 2 3 4 5; do "$FARSIDE" put file:records.pool "$engine" "key $i" "value $i" >/dev/null; done
done
run fsck file:records.pool
expect_status 0
expect_out "nessie (nessie), 5 keys"
expect_out "continuity (continuity), 5 keys"
expect_out "clean: every byte is accounted for"

run fsck embedded:
expect_status 0
expect_out "an embedded pool lives only as long as its process"
expect_out "clean"

# ---- leaks and damage; each pool is a copy with something wrong in it
unsound() { # NAME: leaves the report in $out
  remember "$1.pool"
  run fsck "file:$1.pool"
  expect_status 1
  expect_no_err
  expect_out "NOT CLEAN"
  expect_unchanged
  run fsck --json "file:$1.pool"
  expect_status 1
  expect_json 'not o["ok"]' 'sum(v for k, v in o["bytes"].items() if k != "all") == o["bytes"]["all"] == 4 << 20' \
    'all(f["what"] and f["advice"] for f in o["findings"])'
  expect_unchanged
}

cp good.pool leak.pool && poke leak.pool "$chunk" 0000000000000000
unsound leak
expect_json '(o["damages"], o["leaks"]) == (0, 1)' 'o["bytes"]["leaked"] > 0' \
  '"neither free nor reachable" in o["findings"][0]["what"]'

cp good.pool bitmap.pool && poke bitmap.pool "$chunk" ffffffffffffffff
unsound bitmap
expect_json 'any("reachable, and free" in f["what"] for f in o["findings"])' 'o["bytes"]["damaged"] > 0'

cp good.pool bucket.pool && poke bucket.pool "$bucket" 0000000000010000
unsound bucket
expect_json 'o["damages"] == 1 and not o["complete"]' \
  '"table orders was not walked to its end" in o["findings"][0]["what"]' \
  '[t["why"] is None for t in o["tables"]] == [True, False]' 'o["bytes"]["leaked"] == 0'
run fsck file:bucket.pool
expect_out "so what is leaked cannot be told"

cp good.pool slot.pool && poke slot.pool 4096 f0ff
unsound slot
expect_json 'any("client slot 0 has bits" in f["what"] for f in o["findings"])'

cp good.pool catalog.pool && poke catalog.pool 8240 ff
unsound catalog
expect_json 'not o["complete"]' 'any("catalog entry" in f["what"] for f in o["findings"])'
run table list file:catalog.pool
expect_refusal "the catalog entry at 0x2000 of node 0 is damaged"

cp good.pool chunks.pool && poke chunks.pool $((metadata - 4096)) ffffffffffffffff
unsound chunks
expect_json 'any("which no client writes" in f["what"] for f in o["findings"])'

# A client that died in a file: what it held is adopted by the next one, so it is a note.
cp good.pool dead.pool && poke dead.pool 4096 0290ff0001000000
run fsck --json file:dead.pool
expect_status 0
expect_json 'o["ok"] and o["notes"] == 1' '"was fenced" in o["findings"][0]["what"]'
run table create file:dead.pool next --engine reference
expect_status 0
run fsck --json file:dead.pool
expect_json 'o["ok"] and o["notes"] == 0 and len(o["tables"]) == 3'

# ---- what cannot be opened, or was not meant
spoil good.pool
remember ./*.pool
run fsck file:version.pool
expect_refusal "has layout version 99, this build reads version"
run fsck file:super.pool
expect_refusal "superblock is damaged: its checksum is wrong"
run fsck file:short.pool
expect_refusal "truncated"
run fsck file:noise.pool
expect_refusal "not a Farside pool"
run fsck file:empty.pool
expect_refusal "is an empty file"
run fsck file:nosuch.pool
expect_refusal "nosuch.pool does not exist"
run fsck 'file:nosuch.pool?size=4MiB'
expect_refusal "nosuch.pool does not exist"
run fsck file:.
expect_refusal "Is a directory"
exec 9<good.pool
flock -x 9
run fsck file:good.pool
expect_refusal "good.pool is in use by another process"
exec 9<&-
if [[ $(id -u) != 0 ]]; then
  chmod 000 good.pool
  run fsck file:good.pool
  expect_refusal "Permission denied"
  chmod 600 good.pool
fi
run fsck
expect_error "farside fsck: URL is missing"
run fsck good.pool
expect_error '"good.pool" is not a pool URL'
run fsck 'file:good.pool?size=8Gib!'
expect_error '"8Gib!" is not a size'
run fsck file:good.pool stray
expect_error "'stray' is one word too many"
run fsck verbs://localhost:7700
expect_refusal "verbs: is not in this version"
expect_unchanged

finish
