#!/usr/bin/env bash
# Given FARSIDE_URL in the environment. When commands are given no URL.
# Expect that they use the pool that it names, that a URL on the command line comes first, and clear messages.
source "$(dirname "$0")/cli_common.sh"
cd "$scratch" || exit 1

run get users ada
expect_error "KEY is missing; 'users' stands where the URL belongs: give the URL, or set FARSIDE_URL"
run put users ada countess
expect_error "VALUE is missing; 'users' stands where the URL belongs: give the URL, or set FARSIDE_URL"
run put file:a.pool users ada
expect_error "VALUE is missing (try"
run status
expect_error "URL is missing; give it, or set FARSIDE_URL"
export FARSIDE_URL=
run status
expect_error "URL is missing; give it, or set FARSIDE_URL"

# ---- every command that takes a URL
export FARSIDE_URL='file:a.pool?size=4MiB'
run table create users --engine shard
expect_status 0
expect_out "made the pool"
export FARSIDE_URL=file:a.pool
run put users ada countess
expect_status 0
run put users --hex 00ff 0102
expect_status 0
run put users -- -5 minus-five
expect_status 0
run get users ada
expect_exactly 'countess\n'
run get --raw users ada
expect_exactly 'countess'
run get users -- -5
expect_exactly 'minus-five\n'
run del users -- -5
expect_status 0
run scan --limit 1 users
expect_status 0
[[ $(wc -l <"$out") == 1 ]] || fail "not one record"
run table list
expect_out "users"
run table show users
expect_out "keys          2"
run status --json
expect_json 'o["url"] == "file:a.pool"'
run fsck
expect_out "clean"
run export users users.jsonl
expect_status 0
run import copy users.jsonl --create --engine chime
expect_status 0
run table drop copy
expect_status 0
run import users users.jsonl --json
expect_json 'o["records"] == 2'

# ---- a URL on the command line comes first, also a wrong one
run put 'file:b.pool?size=4MiB' users ada baroness --create
expect_status 0
run get file:b.pool users ada
expect_exactly 'baroness\n'
run get users ada
expect_exactly 'countess\n'
run status file:nosuch.pool
expect_refusal "nosuch.pool does not exist"
run status tcp:nonsense
expect_error "two slashes follow tcp:"

# ---- an empty key is a key; words that are too few or too many are told as ever
run put users '' nothing
expect_status 0
run get users ''
expect_exactly 'nothing\n'
run get users
expect_error "KEY is missing"
run get pool.farside users ada
expect_error "'ada' is one word too many"
run get --help
expect_status 0
expect_out "Usage: farside get [URL] TABLE KEY"
expect_out "FARSIDE_URL"

# ---- what is no URL, and commands that take none
FARSIDE_URL=a.pool run status
expect_error 'FARSIDE_URL: "a.pool" is not a pool URL'
FARSIDE_URL=a.pool run get file:a.pool users ada
expect_exactly 'countess\n'
FARSIDE_URL=a.pool run get --help
expect_status 0
expect_out "Usage: farside get [URL] TABLE KEY"
FARSIDE_URL=nonsense run doctor --json
expect_status 0
FARSIDE_URL=tcp://127.0.0.1:1 run bench --engine shard --records 100 --ops 100 --no-raw
expect_status 0

finish
