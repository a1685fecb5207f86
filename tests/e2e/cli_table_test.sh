#!/usr/bin/env bash
# Given pools in files, sound and unsound. When tables are made, listed, shown and dropped.
# Expect what was asked for; or one line, the right exit code, and no byte of the file changed.
source "$(dirname "$0")/cli_common.sh"
cd "$scratch" || exit 1

reference=(--engine reference)
create() { run table create "$@" "${reference[@]}"; }

# ---- a life of a table
create 'file:a.pool?size=4MiB' users --option buckets=64
expect_status 0
expect_no_err
expect_out "made the pool"
expect_out "created table users: engine reference, options buckets=64"
run fsck --json file:a.pool
expect_json 'o["ok"]' 'o["bytes"]["all"] == 4 << 20'
free=$(json_field 'o["bytes"]["free_chunks"] + o["bytes"]["free_blocks"]')

create file:a.pool orders --json
expect_status 0
expect_json 'o["name"] == "orders" and o["created"] and not o["pool_made"] and o["options"] == {"buckets": "4"}'
run table list file:a.pool
expect_status 0
printf 'TABLE   ENGINE     NODES  OPTIONS\norders  reference  0      buckets=4\nusers   reference  0      buckets=64\n' |
  cmp -s - "$out" || fail "not the list: $(cat "$out")"
run table list --json file:a.pool
expect_json '[t["name"] for t in o["tables"]] == ["orders", "users"]' 'o["tables"][0]["layout_version"] == 2'
run table show file:a.pool users
expect_status 0
expect_out "bytes         40,960"
expect_out "keys          0"
run table show --json file:a.pool users
expect_json 'o["bytes"] == 40960 and o["keys"] == 0 and o["why"] is None' 'o["roots"][0]["node"] == 0'

remember a.pool
create file:a.pool users --option buckets=64
expect_status 0
expect_out "table users is there already, just like this"
create file:a.pool users --option buckets=65
expect_refusal "table 'users' exists with engine reference and options 'buckets=64'"
create 'file:a.pool?size=2MiB' more
expect_refusal "a.pool has 4MiB, but size=2MiB is asked for"
expect_unchanged

run table drop --json file:a.pool orders
expect_status 0
expect_json 'o["name"] == "orders" and o["bytes_freed"] == 4032'
run fsck --json file:a.pool
expect_json "o['ok'] and [t['name'] for t in o['tables']] == ['users']"
run table drop file:a.pool users
expect_status 0
expect_out "dropped table users: 40,960 bytes are free again"
run fsck --json file:a.pool
expect_json 'o["ok"] and o["tables"] == [] and o["bytes"]["reachable"] == 0' \
  "o['bytes']['free_chunks'] + o['bytes']['free_blocks'] >= $free + 40960"
run table list file:a.pool
expect_status 0
expect_out "no tables"

# Names that are words of the command line, and names that shells would not like.
for name in list 'two words' -- '*' 'séance'; do
  [[ $name == -- ]] && continue
  create file:a.pool "$name"
  expect_status 0
  run table drop file:a.pool "$name"
  expect_status 0
done

# ---- what is refused, and changes nothing
create file:a.pool kept --option buckets=8
remember a.pool

create file:a.pool big --option buckets=100000
expect_refusal "can never fit"
create file:a.pool big --option buckets=8090
expect_refusal "node 0"
create 'file:new.pool?size=4MiB' big --option buckets=100000
expect_refusal "can never fit"
[[ ! -e new.pool ]] || fail "a pool was made for nothing"

long=$(printf 'x%.0s' {1..1000})
create file:a.pool "$long"
expect_error 'has 1000 bytes; names of tables have at most 128'
create file:a.pool ''
expect_error "at least one character"
for bad in a/b . .. $'a\nb' $'\377'; do
  create file:a.pool "$bad"
  expect_error "is no name for a table"
  run table show file:a.pool "$bad"
  expect_error "is no name for a table"
  run table drop file:a.pool "$bad"
  expect_error "is no name for a table"
done
run table create file:a.pool t --engine nosuch
expect_error "there is no engine 'nosuch'; there is: shard, chime, sephash, nessie, continuity, reference"
run table create file:a.pool t
expect_error "--engine is missing; there is: shard, chime, sephash, nessie, continuity, reference"
create file:a.pool t --option nosuch=1
expect_error "no option 'nosuch'"
for bad in 0 -1 abc '' 1000001; do
  create file:a.pool t --option "buckets=$bad"
  expect_error "buckets=$bad: expected a number"
done
create file:a.pool t --option buckets
expect_error "'buckets' is not of the form name=value"
run table show file:a.pool nosuch
expect_refusal 'there is no table "nosuch"; there is "kept"'
run table drop file:a.pool nosuch
expect_refusal 'there is no table "nosuch"; there is "kept"'

run table
expect_status 2
expect_no_out
expect_err "Usage: farside table COMMAND"
run table nosuch
expect_error "farside table: there is no command 'nosuch'; there is: create, list, show, drop"
run table create
expect_error "farside table create: URL is missing"
run table show file:a.pool
expect_error "farside table show: NAME is missing"
run table list file:a.pool stray
expect_error "'stray' is one word too many"
run table list file:a.pool --nosuch
expect_error "there is no option '--nosuch'"

# ---- URLs
for bad in '8Gib!' 8G 1.5GiB -1 '' 99999999999TiB; do
  create "file:new.pool?size=$bad" t
  expect_error "\"$bad\" is"
done
create 'file:new.pool?size=1KiB' t
expect_error "1KiB is too small for a pool"
for bad in a.pool '' nosuch: 'file:' 'file:a.pool?nosuch=1' 'file:a.pool?size'; do
  create "$bad" t
  expect_status 2
  run table list "$bad"
  expect_status 2
done
run table list verbs://localhost:7700
expect_refusal "verbs: is not in this version"
[[ ! -e new.pool ]] || fail "a pool was made for nothing"

# ---- files
refused() { # FILE TEXT: by every command that opens it
  run table list "file:$1"
  expect_refusal "$2"
  run table show "file:$1" kept
  expect_refusal "$2"
  run table drop "file:$1" kept
  expect_refusal "$2"
  create "file:$1" t
  expect_refusal "$2"
}
refused nosuch.pool "nosuch.pool does not exist"
create file:nosuch.pool t
expect_refusal "add a size, as in ?size=1GiB"
refused . "Is a directory"
spoil a.pool
remember ./*.pool
refused version.pool "has layout version 99, this build reads version"
refused super.pool "superblock is damaged: its checksum is wrong"
refused short.pool "truncated: the superblock says 4194304 bytes, but there are 500000"
refused noise.pool "not a Farside pool"
refused empty.pool "is an empty file"
exec 9<a.pool
flock -x 9
refused a.pool "a.pool is in use by another process"
exec 9<&-
if [[ $(id -u) != 0 ]]; then
  chmod 000 a.pool
  refused a.pool "Permission denied"
  chmod 600 a.pool
fi
expect_unchanged

# ---- a damaged table: it is shown as far as it can be, and can be dropped
run table show --json file:a.pool kept
root=$(json_field 'o["roots"][0]["offset"]')
poke a.pool $(((root + 511) / 512 * 512)) 0000000000010000
remember a.pool
run table show file:a.pool kept
expect_status 1
expect_out "options       buckets=8"
expect_out "bytes         not known: the bucket at"
run table list file:a.pool
expect_status 0
expect_unchanged
run table drop file:a.pool kept
expect_status 0
expect_out "dropped table kept, and freed what no table reaches any more"
run fsck --json file:a.pool
expect_status 0
expect_json 'o["ok"] and o["tables"] == [] and o["bytes"]["reachable"] == 0 and o["notes"] == 0'

# ---- keys are counted, wherever they stand: in the leaves, or in blocks beside longer separators than a leaf
# has room for
run table create 'file:keys.pool?size=4MiB' inline --engine chime --option keys=inline
expect_status 0
run table create file:keys.pool bytes --engine chime --option span=1
expect_status 0
for number in 1 2 3 4 5; do
  run put file:keys.pool inline "number $number" "8 bytes."
  expect_status 0
  run put file:keys.pool bytes "a common prefix, then $number" value
  expect_status 0
done
for table in inline bytes; do
  run table show --json file:keys.pool "$table"
  expect_json 'o["keys"] == 5'
done

# ---- embedded pools
run table list embedded:
expect_status 0
expect_out "no tables: an embedded pool lives only as long as its process"
run table list --json embedded:
expect_json 'o["tables"] == []' '"lives only" in o["note"]'
create embedded: t
expect_status 0
expect_out "it is gone again"
create 'embedded:?size=4MiB' big --option buckets=100000
expect_refusal "can never fit"
for verb in show drop; do
  run table "$verb" embedded: t
  expect_refusal 'there is no table "t": an embedded pool lives only as long as its process'
done

finish
