#!/usr/bin/env bash
# Given a table that keeps its keys in order. When parts of it are scanned.
# Expect exactly those records, in the order of their keys, however many pages that takes; and a clean end
# when the reader of the output goes away.
source "$(dirname "$0")/cli_common.sh"
cd "$scratch" || exit 1

run table create 'file:a.pool?size=64MiB' sorted --engine reference --option buckets=200
expect_status 0
for key in cherry apple fig banana date elder; do "$FARSIDE" put file:a.pool sorted "$key" "a $key" || fail "put $key"; done
"$FARSIDE" put file:a.pool sorted --hex ff 01 || fail "put ff"
"$FARSIDE" put file:a.pool sorted --hex ffff 02 || fail "put ffff"
"$FARSIDE" put file:a.pool sorted '' empty || fail "put the empty key"
remember a.pool

# ---- all of it, and parts
run scan file:a.pool sorted
expect_status 0
expect_no_err
expect_exactly '\tempty\napple\ta apple\nbanana\ta banana\ncherry\ta cherry\ndate\ta date\nelder\ta elder\nfig\ta fig\n\\xff\t\\x01\n\\xff\\xff\t\\x02\n'
run scan file:a.pool sorted --from banana --to date
expect_exactly 'banana\ta banana\ncherry\ta cherry\n'
run scan file:a.pool sorted --from b --to e --limit 2
expect_exactly 'banana\ta banana\ncherry\ta cherry\n'
run scan file:a.pool sorted --from elder --prefix e
expect_exactly 'elder\ta elder\n'
run scan file:a.pool sorted --prefix e --to elder
expect_status 0
expect_no_out
run scan file:a.pool sorted --from z --to a
expect_status 0
expect_no_out
run scan file:a.pool sorted --prefix ''
[[ $(wc -l <"$out") == 9 ]] || fail "not nine lines: $(cat "$out")"
run scan file:a.pool sorted --hex --prefix ff
expect_exactly 'ff\t01\nffff\t02\n'
run scan file:a.pool sorted --base64 --from /w== --to //8=
expect_exactly '/w==\tAQ==\n'

# ---- JSON
run scan file:a.pool sorted --from c --limit 2 --json
expect_json 'o["table"] == "sorted" and o["engine"] == "reference" and o["ordered"]' \
  '[r["key"] for r in o["records"]] == ["cherry", "date"]' 'o["count"] == 2 and not o["complete"]'
run scan file:a.pool sorted --from c --to d --json
expect_json '[r["key"] for r in o["records"]] == ["cherry"]' 'o["complete"]'
run scan file:a.pool sorted --prefix nosuch --json
expect_json 'o["records"] == [] and o["count"] == 0 and o["complete"]'
run scan file:a.pool sorted --limit 0 --json
expect_json 'o["records"] == [] and o["count"] == 0'

# ---- what makes no sense
run scan file:a.pool sorted --hex --from xy
expect_error "--from: "
run scan file:a.pool sorted --base64 --to a
expect_error "--to: base64 has groups of four"
run scan file:a.pool sorted --hex --prefix 123
expect_error "--prefix: "
expect_unchanged

# ---- many pages
for ((i = 3000; i > 0; --i)); do printf '{"key":"k%05d","value":"v%d"}\n' "$i" "$i"; done >many.jsonl
run import file:a.pool many many.jsonl --create --engine reference --option buckets=400
expect_status 0
run scan file:a.pool many
expect_status 0
cut -f1 "$out" >keys
seq -f 'k%05g' 1 3000 | cmp -s - keys || fail "not all keys in order"
run scan file:a.pool many --from k01000 --to k02000
[[ $(wc -l <"$out") == 1000 && $(head -1 "$out") == k01000* && $(tail -1 "$out") == k01999* ]] || fail "not a thousand"
run scan file:a.pool many --limit 777 --json
expect_json 'o["count"] == 777 and o["records"][-1]["key"] == "k00777" and not o["complete"]'

# ---- the reader of the output goes away
ran='farside scan many | head -1'
"$FARSIDE" scan file:a.pool many 2>"$err" | head -1 >"$out"
status=${PIPESTATUS[0]}
[[ $status == 0 || $status == 3 ]] || fail "a closed pipe: exit code $status"
expect_no_err
expect_exactly 'k00001\tv1\n'

# ---- help says which engines are ordered
run table create --help
expect_out '(ordered: '
run scan --help
expect_out 'ordered'

finish
