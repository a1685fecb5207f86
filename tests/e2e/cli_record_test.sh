#!/usr/bin/env bash
# Given tables of pools. When records are put, read, deleted and listed.
# Expect every byte as it was given; or one line, the right exit code, and no byte of the file changed.
source "$(dirname "$0")/cli_common.sh"
cd "$scratch" || exit 1

# ---- a table that is not there: nothing is made, and the line says how to
run put 'file:a.pool?size=4MiB' users ada countess
expect_refusal "to make it: farside table create 'file:a.pool?size=4MiB' users --engine shard, or add --create"
run put file:a.pool users ada countess
expect_refusal "to make it: farside table create 'file:a.pool?size=1GiB' users --engine shard, or add --create"
[[ ! -e a.pool ]] || fail "a pool was made for nothing"
run put 'file:a.pool?size=4MiB' users ada countess --create
expect_status 0
expect_no_err
expect_exactly 'created table users: engine shard\n'
run put file:a.pool users ada duchess --create
expect_status 0
expect_exactly ''
remember a.pool
run put file:a.pool nosuch ada countess
expect_refusal 'there is no table "nosuch"; there is "users"; to make it: farside table create file:a.pool nosuch'
for verb in get del; do
  run "$verb" file:a.pool nosuch ada
  expect_refusal 'there is no table "nosuch"; there is "users"'
done
run scan file:a.pool nosuch
expect_refusal 'there is no table "nosuch"'
run put file:a.pool users ada x --create --engine reference
expect_refusal "table 'users' exists with engine shard"
run put file:a.pool big ada x --create --engine reference --option buckets=100000
expect_refusal "can never fit"
expect_unchanged

# ---- one record
run put file:a.pool users ada countess
expect_status 0
expect_no_out
expect_no_err
run get file:a.pool users ada
expect_status 0
expect_no_err
expect_exactly 'countess\n'
run get file:a.pool users ada --raw
expect_exactly 'countess'
run get file:a.pool users ada --hex
expect_error "KEY: hexadecimal has two digits for each byte; these are 3"
run get file:a.pool users --hex 616461
expect_exactly '636f756e74657373\n'
run get file:a.pool users --base64 YWRh --raw
expect_exactly 'Y291bnRlc3M='
run get file:a.pool users ada --json
expect_json 'o == {"table": "users", "key": "ada", "found": True, "value": "countess"}'
run get file:a.pool users bob
expect_status 1
expect_no_out
expect_err 'farside get: there is no key "bob" in table users'
run get file:a.pool users bob --json
expect_status 1
expect_no_err
expect_json 'o == {"table": "users", "key": "bob", "found": False, "value": None}'
run put file:a.pool users bob '' --json
expect_json 'o == {"table": "users", "key": "bob", "value_bytes": 0, "created": False}'
run get file:a.pool users bob
expect_status 0
expect_exactly '\n'
run del file:a.pool users bob
expect_status 0
expect_no_out
expect_no_err
run del file:a.pool users bob
expect_status 1
expect_no_out
expect_err 'farside del: there is no key "bob" in table users'
run del file:a.pool users bob --json
expect_status 1
expect_json 'o == {"table": "users", "key": "bob", "deleted": False}'
run del file:a.pool users ada --json
expect_json 'o == {"table": "users", "key": "ada", "deleted": True}'

# ---- keys and values that something else could be meant by
for word in '' ' ' - -5 -x -- --json get help '[a,b]' '"q"' 'a,b' '%%' "it's" $'a\tb' $'a\nb' $'\303\251' $'\377'; do
  run put file:a.pool users --json -- "$word" "x$word"
  expect_status 0
  run get file:a.pool users --raw -- "$word"
  expect_status 0
  printf 'x%s' "$word" | cmp -s - "$out" || fail "the value of '$word' is not what was put: $(head -c 100 "$out")"
  run del file:a.pool users -- "$word"
  expect_status 0
done
run put file:a.pool users --base64 AP8= AAEC
run get file:a.pool users --hex 00ff
expect_exactly '000102\n'
run get file:a.pool users --hex 00ff --json
expect_json 'o["key64"] == "AP8=" and o["value"] == "\x00\x01\x02"'
run put file:a.pool users --hex 00fe ff
run get file:a.pool users --hex 00fe --json
expect_json 'o["key64"] == "AP4=" and o["value64"] == "/w=="'
run del file:a.pool users --hex 00fe

# ---- values from stdin
ran='put - (from stdin)'
head -c 3000000 /dev/urandom >large
"$FARSIDE" put file:a.pool users large - <large 2>"$err" || fail "$(cat "$err")"
"$FARSIDE" get file:a.pool users large --raw | cmp -s - large || fail "not the bytes that were put"
"$FARSIDE" put file:a.pool users large - <&- 2>"$err" && fail "stdin is closed"
expect_err "farside put: stdin: "
: | "$FARSIDE" put file:a.pool users large - || fail "an empty value"
run get file:a.pool users large
expect_exactly '\n'
run del file:a.pool users large

# ---- too large
key=$(printf 'k%.0s' {1..1000})
key=$key$key$key$key$key$key$key$key
run put file:a.pool users "$key$key$key$key$key$key$key$key" v
expect_status 0
run get file:a.pool users "$key$key$key$key$key$key$key$key"
expect_exactly 'v\n'
run del file:a.pool users "$key$key$key$key$key$key$key$key"
remember a.pool
for verb in get del; do
  run "$verb" file:a.pool users "$key$key$key$key$key$key$key$key$key"
  expect_error "KEY has 72,000 bytes; at most 65,536 are possible"
done
run put file:a.pool users "$key$key$key$key$key$key$key$key$key" v
expect_error "KEY has 72,000 bytes"
ran='put - (of more than 64 MiB)'
head -c 67108865 /dev/zero | "$FARSIDE" put file:a.pool users huge - >"$out" 2>"$err"
status=$?
expect_refusal "stdin has more than 67,108,864 bytes"
expect_unchanged
ran='put - (of all that fits)'
head -c 10000000 /dev/zero | "$FARSIDE" put file:a.pool users huge - >"$out" 2>"$err"
status=$?
expect_status 3
[[ $(wc -l <"$err") == 1 ]] || fail "not one line: $(cat "$err")"
run get file:a.pool users huge
expect_status 1
run fsck --json file:a.pool
expect_json 'o["ok"]'

# ---- wrong usage
run put file:a.pool users k
expect_error "farside put: VALUE is missing"
run put file:a.pool users k v w
expect_error "'w' is one word too many"
run put file:a.pool users k v --engine shard
expect_error "add --create"
run put file:a.pool users k v --create --engine nosuch
expect_error "there is no engine 'nosuch'; there is: shard, chime, sephash, nessie, continuity, reference"
run put file:a.pool users k v --create --engine raw
expect_error "remembers nothing"
run put file:a.pool users k v --hex --base64
expect_error "--hex excludes --base64"
run put file:a.pool users k v --hex
expect_error "KEY: hexadecimal has two digits"
run put file:a.pool users k --nosuch v
expect_error "there is no option '--nosuch'"
run get file:a.pool a/b k
expect_error "is no name for a table"
run get nosuch users k
expect_error '"nosuch" is not a pool URL'
run get file:a.pool users k --base64
expect_error "KEY: base64 has groups of four"
run scan file:a.pool users --limit -1
expect_error "--limit: '-1' is not a whole number"

# ---- scans
run scan file:a.pool users
expect_status 0
expect_no_err
expect_exactly '\\x00\\xff\t\\x00\\x01\\x02\n'
run del file:a.pool users --hex 00ff
run scan file:a.pool users
expect_status 0
expect_no_out
for i in {1..9}; do "$FARSIDE" put file:a.pool users "user$i" "value $i" || fail "put $i"; done
run put file:a.pool users $'tab\there' $'caf\303\251\nline'
remember a.pool
run scan file:a.pool users
expect_status 0
[[ $(wc -l <"$out") == 10 ]] || fail "not ten lines: $(cat "$out")"
expect_out $'user7\tvalue 7'
expect_out $'tab\\there\tcaf\303\251\\nline'
run scan file:a.pool users --json
expect_json 'o["table"] == "users" and o["engine"] == "shard"' 'o["count"] == o["records_read"] == 10 and o["complete"]' \
  'sorted(r["key"] for r in o["records"])[:2] == ["tab\there", "user1"]' \
  '{"key": "user3", "value": "value 3"} in o["records"]'
run scan file:a.pool users --limit 3
[[ $(wc -l <"$out") == 3 ]] || fail "not three lines: $(cat "$out")"
run scan file:a.pool users --limit 0 --json
expect_json 'o["records"] == [] and o["count"] == 0'
run scan file:a.pool users --hex --limit 1
grep -qE '^[0-9a-f]+	[0-9a-f]+$' "$out" || fail "not in hexadecimal: $(cat "$out")"
for option in --from --to --prefix; do
  run scan file:a.pool users "$option" a
  expect_refusal "table users has the engine shard, which keeps keys in no order, but $option needs one; make a table of an ordered engine for that"
done
expect_unchanged

# ---- files that can be looked at, and files that cannot
chmod 400 a.pool
run get file:a.pool users user1
expect_exactly 'value 1\n'
chmod 600 a.pool
exec 9<a.pool
flock -s 9 # as another process holds it that reads the file too
run get file:a.pool users user2
expect_exactly 'value 2\n'
run put file:a.pool users user2 other
expect_refusal "a.pool is in use by another process"
exec 9<&-
spoil a.pool
remember ./*.pool
for bad in 'version has layout version 99' 'super superblock is damaged' 'short truncated' 'noise not a Farside pool' \
  'empty is an empty file'; do
  read -r name text <<<"$bad"
  for words in 'get users k' 'del users k' 'put users k v' 'scan users' 'export users' 'import users' 'status'; do
    read -r verb rest <<<"$words"
    # shellcheck disable=SC2086
    run "$verb" "file:$name.pool" $rest
    expect_refusal "$text"
  done
done
expect_unchanged

# ---- embedded pools
run get embedded: t k
expect_refusal 'there is no table "t": an embedded pool lives only as long as its process'
run put embedded: t k v --create
expect_status 0
expect_out "the record is gone again: an embedded pool lives only as long as its process"
run put embedded: t k v --create --json
expect_json 'o["created"] and "lives only" in o["note"]'
run get verbs://localhost:1 t k
expect_refusal "verbs: is not in this version"

finish
