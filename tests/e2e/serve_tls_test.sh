#!/usr/bin/env bash
# A memory node with TLS: clients with a certificate for it may write, readers may read, and no other client
# gets in.
. "$(dirname "$0")/cli_common.sh"
command -v openssl >/dev/null || exit 77
cd "$scratch" || exit 1
started=()
end_all() {
  for pid in "${started[@]}"; do kill -KILL "$pid" 2>/dev/null; done
  rm -rf "$scratch"
}
trap end_all EXIT

# certificate NAME SUBJECT AUTHORITY USAGE [MORE...]
certificate() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -CA "$3.pem" -CAkey "$3.key" \
    -subj "$2" -addext "basicConstraints=CA:FALSE" -addext "extendedKeyUsage=$4" "${@:5}" \
    -keyout "$1.key" -out "$1.pem" 2>openssl.log || fail "openssl: $(cat openssl.log)"
}
for authority in ca stranger; do
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj "/CN=$authority" \
    -keyout $authority.key -out $authority.pem 2>openssl.log || fail "openssl: $(cat openssl.log)"
done
certificate node "/CN=node" ca serverAuth -addext "subjectAltName=IP:127.0.0.1"
certificate writer "/CN=writer/OU=read-write" ca clientAuth
certificate reader "/CN=reader/OU=read-only" ca clientAuth
certificate plain "/CN=plain" ca clientAuth
certificate typo "/CN=typo/OU=Read-Only " ca clientAuth
certificate spy "/CN=spy/OU=read-write" stranger clientAuth
certificate other "/CN=other/OU=read-write" ca serverAuth

"$FARSIDE" serve --size 64MiB --hugepages off --listen tcp://127.0.0.1:0 --tls-cert node.pem --tls-key node.key \
  --tls-ca ca.pem >node.out 2>node.log </dev/null &
started+=($!)
until [[ -s node.out ]]; do
  kill -0 "${started[0]}" 2>/dev/null || { fail "the node did not start: $(cat node.log)"; finish; }
  sleep 0.02 # and look again
done
read -r _ tcp <node.out
as() { echo "$tcp?ca=ca.pem&cert=$1.pem&key=$1.key"; }

run table create "$(as writer)" users --engine shard
expect_status 0
for i in {0..199}; do echo "{\"key\": \"k$i\", \"value\": \"v$i\"}"; done >records.jsonl
run import "$(as writer)" users records.jsonl
expect_status 0

# A reader finds what is there, and changes nothing.
for i in 0 7 199; do
  run get "$(as reader)" users "k$i"
  expect_status 0
  expect_out "v$i"
done
run get "$(as reader)" users absent
expect_status 1
run scan "$(as reader)" users --limit 5
expect_status 0
run put "$(as reader)" users k7 changed
expect_refusal "may only read"
run del "$(as reader)" users k7
expect_refusal "may only read"
run table drop "$(as reader)" users
expect_refusal "may only read"
run get "$(as writer)" users k7
expect_out v7
# In tables of every sort.
for engine in chime sephash nessie continuity; do
  run table create "$(as writer)" "$engine" --engine "$engine"
  expect_status 0
  run import "$(as writer)" "$engine" records.jsonl
  expect_status 0
  run get "$(as reader)" "$engine" k7
  expect_out v7
  run get "$(as reader)" "$engine" absent
  expect_status 1
  run put "$(as reader)" "$engine" k7 changed
  expect_refusal "may only read"
  # No reader that has gone is waited for.
  run table drop "$(as writer)" "$engine"
  expect_status 0
done
# So does a client whose certificate does not say that it may write.
for client in plain typo; do
  run get "$(as $client)" users k7
  expect_out v7
  run put "$(as $client)" users k7 changed
  expect_refusal "may only read"
done
# Readers leave nothing behind, although some of them were refused on the way.
run status "$(as writer)"
expect_status 0
expect_out "no clients"

# No other client gets in: another authority, a certificate for nodes, no certificate, plain text.
run get "$(as spy)" users k7
expect_status 3
run get "$(as other)" users k7
expect_status 3
expect_err clientAuth
run get "$tcp" users k7
expect_status 3
run get "$tcp?insecure=yes" users k7
expect_status 3
# The node must be who it says.
run get "$tcp?ca=stranger.pem&cert=writer.pem&key=writer.key" users k7
expect_status 3
run get "$tcp?ca=ca.pem&cert=writer.pem" users k7
expect_error "all three"
run get "$tcp?ca=nowhere.pem&cert=writer.pem&key=writer.key" users k7
expect_status 3

run fsck "$(as writer)"
expect_status 0
finish
