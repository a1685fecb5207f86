#!/usr/bin/env bash
# Given this machine. When `farside doctor` looks at it.
# Expect the backends of this version, those that are built in to work, and findings that have a fix.
source "$(dirname "$0")/cli_common.sh"

run doctor --json
expect_status 0
expect_no_err
expect_json 'list(o) == ["backends", "findings"]' \
  'all(list(b) == ["name", "built", "usable", "why"] for b in o["backends"])' \
  'all(type(b["built"]) is bool and type(b["usable"]) is bool and b["why"] for b in o["backends"])' \
  '[b["name"] for b in o["backends"]] == ["embedded", "sim", "shm", "tcp", "verbs"]' \
  '[b["name"] for b in o["backends"] if b["built"]] == ["embedded", "sim", "shm", "tcp"]' \
  '[b["name"] for b in o["backends"] if b["usable"]] == ["embedded", "sim", "shm", "tcp"]' \
  'len(o["findings"]) >= 5' \
  'all(list(f) == ["what", "severity", "fix"] for f in o["findings"])' \
  'all(f["what"] and f["severity"] in ("ok", "note", "warning") for f in o["findings"])' \
  'all(f["fix"] for f in o["findings"] if f["severity"] == "warning")' \
  'all(not f["fix"] for f in o["findings"] if f["severity"] == "ok")'

run doctor
expect_status 0
expect_no_err
expect_out "embedded"
expect_out "usable"
expect_out "core"
expect_out "memory"

# A limit of this process is seen, and comes with its fix.
ran="doctor with a small limit of locked memory"
(ulimit -l 64 && "$FARSIDE" doctor --json) >"$out" 2>"$err"
expect_json 'any("64 KiB" in f["what"] and "memlock" in f["fix"] for f in o["findings"])'

finish
