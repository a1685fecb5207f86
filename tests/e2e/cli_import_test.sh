#!/usr/bin/env bash
# Given files of records, good and bad. When they are imported, and tables are exported.
# Expect the same bytes on both sides; whatever goes wrong is one line, and no file is left half written.
source "$(dirname "$0")/cli_common.sh"
cd "$scratch" || exit 1

# ---- bytes of all kinds come back
python3 - <<'END'
import base64, json, random
random.seed(1)
records = {}
def text(most):
    return "".join(random.choice(["a", "\u00e9", "\u20ac", "\U0001f600", "\n", "\t", "\"", "\\", "\0", "\x1f", "\x7f", " "])
                   for _ in range(random.randrange(most)))
for i in range(5000):
    key = f"{i} {text(9)}".encode() if i % 2 else bytes([i % 256, i // 256]) + random.randbytes(5)
    value = text(50).encode() if i % 3 else random.randbytes(random.randrange(200))
    records[key] = value
def field(name, data):
    try:
        return {name: data.decode()} if random.random() < 0.9 else {name + "64": base64.b64encode(data).decode()}
    except UnicodeDecodeError:
        return {name + "64": base64.b64encode(data).decode()}
with open("in.jsonl", "w") as out:
    out.write("\n")
    for key, value in records.items():
        if random.random() < 0.1:  # a line that does not count: the last one does
            out.write(json.dumps({**field("value", b"old"), **field("key", key)}) + "\r\n\n")
        out.write(json.dumps({**field("key", key), **field("value", value)}, ensure_ascii=random.random() < 0.5) + "\n")
with open("expected.txt", "w") as out:
    out.writelines(sorted(f"{key.hex()} {value.hex()}\n" for key, value in records.items()))
END
decode() { # FILE: the records of an export, in order
  python3 - "$1" <<'END'
import base64, json, sys
def data(record, name):
    return record[name].encode() if name in record else base64.b64decode(record[name + "64"])
lines = [json.loads(line) for line in open(sys.argv[1], newline="\n")]
sys.stdout.writelines(sorted(f"{data(r, 'key').hex()} {data(r, 'value').hex()}\n" for r in lines))
END
}
for engine in shard reference; do
  options=()
  [[ $engine == reference ]] && options=(--option buckets=2000)
  run import 'file:a.pool?size=16MiB' "$engine" in.jsonl --create --engine "$engine" "${options[@]}"
  expect_status 0
  expect_no_err
  expect_out "created table $engine: engine $engine"
  expect_out "records into table $engine: "
  remember a.pool
  run export file:a.pool "$engine" out.jsonl --json
  expect_status 0
  expect_json "o['table'] == '$engine' and o['records'] == 5000 and o['file'] == 'out.jsonl'"
  expect_unchanged
  decode out.jsonl | cmp -s - expected.txt || fail "the export is not what was imported"
  "$FARSIDE" export file:a.pool "$engine" >piped.jsonl 2>"$err" || fail "$(cat "$err")"
  expect_err "exported 5,000 records of table $engine"
  cmp -s out.jsonl piped.jsonl || fail "stdout gets something else than a file"
done
run import file:a.pool shard out.jsonl --json
expect_json 'o["records"] == o["lines"] == 5000 and o["bytes"] > 0 and not o["created"]'
run fsck --json file:a.pool
expect_json 'o["ok"]'
ran='export | import'
"$FARSIDE" export file:a.pool shard 2>/dev/null | "$FARSIDE" import 'file:b.pool?size=16MiB' copy --create >"$out" 2>"$err"
status=$?
expect_status 0
expect_out "imported 5,000 records into table copy"
run export file:b.pool copy copy.jsonl
decode copy.jsonl | cmp -s - expected.txt || fail "the copy is not what was exported"

# ---- lines that are wrong: those before them are imported
"$FARSIDE" table create file:b.pool t --engine shard >/dev/null
line() { printf '{"key":"key%d","value":"v"}\n' "$1"; }
wrong() { # LINE TEXT: after 2000 good lines and one that is empty
  { for i in {1..2000}; do line "$i"; done; echo; printf '%b\n' "$1"; line 3000; } >bad.jsonl
  run import file:b.pool t bad.jsonl
  expect_refusal "$2"
  expect_err "farside import: bad.jsonl, line 2002: "
  expect_err "; 2,000 records were imported, all of those before this line"
  run get file:b.pool t key2000
  expect_status 0
  run get file:b.pool t key3000
  expect_status 1
}
wrong 'hello' "this is not JSON, at byte 1 of the line"
wrong '{"key":"k"}' "there is no value; expected {\"key\":\"...\",\"value\":\"...\"}"
wrong '{"key":"k","vaule":"v"}' 'there is no field "vaule"'
wrong '{"key":"k","value":3}' "value is a number"
wrong '{"key64":"!","value":"v"}' "key64: base64 has groups of four"
wrong '{"key":"\0377","value":"v"}' "this is not JSON"
wrong '{"key":"k","value":"v"}\0000' "which is zero"
wrong "{\"key\":\"$(printf 'k%.0s' {1..65537})\",\"value\":\"v\"}" "the key has 65537 bytes"
ran='import (a bad first line)'
echo '[' | "$FARSIDE" import file:b.pool t >"$out" 2>"$err"
status=$?
expect_refusal "stdin, line 1: "
expect_err "; nothing was imported"
ran='import /dev/zero'
"$FARSIDE" import file:b.pool t /dev/zero >"$out" 2>"$err"
status=$?
expect_refusal "/dev/zero, line 1: the line has more than "
ran='import (the last line has no newline)'
printf '{"key":"last","value":"v"}' | "$FARSIDE" import file:b.pool t >"$out" 2>"$err"
status=$?
expect_status 0
expect_out "imported 1 record into table t: 5 bytes"
run import file:b.pool t # stdin is empty
expect_status 0
expect_out "imported 0 records"

# ---- a pool that gets full: what is there is there, and nothing is broken
"$FARSIDE" table create 'file:small.pool?size=1MiB' t --engine shard >/dev/null
python3 -c 'for i in range(5000): print("{\"key\":\"k%d\",\"value\":\"%s\"}" % (i, "v" * 1000))' >many.jsonl
run import file:small.pool t many.jsonl
expect_status 3
expect_no_out
[[ $(wc -l <"$err") == 1 ]] || fail "not one line: $(cat "$err")"
expect_err "farside import: many.jsonl, line "
imported=$(sed 's/.*; \([0-9,]*\) records were imported, all of those before this line and perhaps some behind it$/\1/; s/,//' "$err")
run status --records --json file:small.pool
expect_json "o['tables'][0]['records'] == $imported and $imported > 100"
run fsck --json file:small.pool
expect_json 'o["ok"]'

# ---- files that cannot be read or written
remember b.pool
run import file:b.pool t nosuch.jsonl
expect_refusal "farside import: nosuch.jsonl: No such file or directory"
run import file:b.pool nosuch out.jsonl
expect_refusal 'there is no table "nosuch"'
expect_unchanged
run import file:b.pool t .
expect_refusal "Is a directory; nothing was imported"
run export file:b.pool t nosuch/out.jsonl
expect_refusal "farside export: nosuch/out.jsonl: No such file or directory"
run export file:b.pool t .
expect_refusal "Is a directory"
run export file:b.pool t /dev/full
expect_refusal "farside export: /dev/full: No space left on device"
[[ -c /dev/full ]] || fail "/dev/full is no device any more"
ran='export >/dev/full'
"$FARSIDE" export file:b.pool t >/dev/full 2>"$err"
status=$?
expect_status 3
expect_err "farside export: stdout: No space left on device"
ran='export with stdout closed'
"$FARSIDE" export file:b.pool t >&- 2>"$err"
status=$?
expect_status 3
[[ $(wc -l <"$err") == 1 ]] || fail "not one line: $(cat "$err")"
run export file:b.pool t --json
expect_error "--json needs a FILE"
run export file:b.pool t a b
expect_error "'b' is one word too many"
run import file:b.pool t out.jsonl --engine shard
expect_error "add --create"

# ---- a disk that gets full: the file that was there stays
echo precious >kept.jsonl
ran='export into a file of limited size'
(
  ulimit -f 8 # times 1 KiB
  trap '' XFSZ
  exec "$FARSIDE" export file:b.pool copy kept.jsonl
) >"$out" 2>"$err"
status=$?
expect_refusal "kept.jsonl: File too large; nothing was exported"
[[ $(cat kept.jsonl) == precious ]] || fail "the file that was there is gone"
run export file:b.pool copy kept.jsonl
expect_status 0
[[ $(wc -l <kept.jsonl) == 5000 ]] || fail "the file was not replaced"
ln -s kept.jsonl link.jsonl
run export file:b.pool t link.jsonl
expect_status 0
[[ -L link.jsonl && $(wc -l <kept.jsonl) == 2001 ]] || fail "a link is written through"
compgen -G '*.tmp-*' >/dev/null && fail "temporary files are left: $(echo ./*.tmp-*)"

# ---- readers that go away: quiet, whether SIGPIPE is ignored or not
for ignored in '' PIPE; do
  for command in 'export file:b.pool copy' 'scan file:b.pool copy' 'scan file:b.pool copy --json'; do
    ran="$command | head -c 1"
    # shellcheck disable=SC2086
    ([[ -n $ignored ]] && trap '' $ignored; "$FARSIDE" $command 2>"$err") | head -c 1 >/dev/null
    status=${PIPESTATUS[0]}
    [[ $status == 0 || $status == 3 ]] || fail "exit code $status"
    expect_no_err
  done
done

# ---- a damaged table: what could be read is kept under another name
run table show --json file:a.pool reference
root=$(json_field 'o["roots"][0]["offset"]')
cp a.pool damaged.pool
poke damaged.pool $(((root + 511) / 512 * 512 + 512)) 0000000000010000
remember damaged.pool kept.jsonl
run export file:damaged.pool reference kept.jsonl
expect_refusal "could be read before that, and stand in "
expect_err "kept.jsonl.partial"
[[ -e kept.jsonl.partial ]] || fail "there is no kept.jsonl.partial"
run export file:damaged.pool shard good.jsonl
expect_status 0
run status --records file:damaged.pool
expect_status 1
expect_out "DAMAGED: run 'farside fsck'"
expect_unchanged

# ---- progress, on terminals
need_terminal
run_on_terminal import file:a.pool shard in.jsonl
expect_status 0
expect_out "records into table shard"

finish
