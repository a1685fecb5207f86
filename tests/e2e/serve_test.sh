#!/usr/bin/env bash
# farside serve with real processes: one node that serves TCP and shared memory at once, what it refuses, and
# what its clients see when it stops, is killed and comes back.
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
stop_node() {
  kill -TERM "$1" 2>/dev/null
  wait "$1"
}
end_all() {
  for pid in "${started[@]}"; do kill -KILL "$pid" 2>/dev/null; done
  rm -rf "$scratch"
}
trap end_all EXIT

# ---- what makes no sense is said in one line

run serve
expect_error "say how clients come"
run serve --shm a
expect_error "--size"
run serve --size 1GiB --listen 127.0.0.1:7700
expect_error "tcp://"
run serve --size 1GiB --listen tcp://127.0.0.1
expect_error "--listen"
run serve --size nonsense --shm a
expect_error "is not a size"
run serve --size 4KiB --shm a
expect_error "too small"
run serve --size 64MiB --shm a --hugepages perhaps
expect_error "neither auto nor on nor off"
run serve --size 8TiB --shm a --hugepages on
expect_status 3
expect_err "are reserved and free"
run serve --size 64MiB --shm a --fence maybe
expect_error "neither wait nor kill"
run serve --size 64MiB --listen tcp://127.0.0.1:0 --tls-cert a.pem
expect_error "all three"
run serve --size 64MiB --listen tcp://127.0.0.1:0 --buffers 1MiB
expect_error "at least 256MiB"
run serve --size 64MiB --listen tcp://127.0.0.1:0 --stall 0
expect_error "--stall"
run serve --size 64MiB --listen tcp://127.0.0.1:0 --per-address 0
expect_error "--per-address"
run serve --size 64MiB --shm a --insecure
expect_error "--listen"
# Other machines are served with TLS only.
run serve --size 64MiB --hugepages off --listen tcp://0.0.0.0:0
expect_refusal "TLS"

# ---- a node says so if it may not open as many sockets as it lets in, strangers included

(
  ulimit -n 2048 # the soft limit and the hard one
  "$FARSIDE" serve --size 64MiB --listen tcp://127.0.0.1:0 >few.out 2>few.log </dev/null &
  node=$!
  until [[ -s few.out ]]; do
    kill -0 "$node" 2>/dev/null || exit 1
    sleep 0.02 # and look again
  done
  stop_node "$node"
) || fail "a node with few descriptors did not serve: $(cat few.log)"
grep -q "file descriptors" few.log || fail "a node with few descriptors did not say so: $(cat few.log)"

# ---- one node, two ways to reach it

start_node both --size 64MiB --shm "$scratch/both.sock" --listen tcp://127.0.0.1:0
both=$node
tcp=$(url_of tcp)
shm=$(url_of shm)
[[ -n $tcp && -n $shm ]] || fail "the line of a node that is ready lacks a URL: $ready"
run table create "$tcp" users --engine shard
expect_status 0
run put "$tcp" users ada countess
expect_status 0
run get "$shm" users ada
expect_status 0
expect_out countess
run put "$shm" users alan bombe
expect_status 0
run get "$tcp" users alan
expect_out bombe
run table list "$shm"
expect_out users
run status "$tcp"
expect_status 0
expect_out users
# The log of a get has two lines at most (that the host came, that it left), and each line has its time of
# day.
lines=$(wc -l <both.log)
run get "$tcp" users alan
expect_status 0
(($(wc -l <both.log) <= lines + 2)) || fail "the log of one get has more than two lines: $(cat both.log)"
grep -vE '^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\.[0-9]{3}Z (info|warn): ' both.log &&
  fail "a line of the log without the time of day"
run del "$tcp" users ada
expect_status 0
run get "$shm" users ada
expect_status 1
run bench --engine shard --url "$shm" --records 2000 --ops 2000 --no-raw
expect_status 0
run bench --engine shard --url "$tcp" --records 500 --ops 500 --depth 8 --no-raw
expect_status 0
run table list "$tcp"
grep -q bench "$out" && fail "bench has left its table"
for url in "$tcp" "$shm"; do
  run fsck "$url"
  expect_status 0
  expect_out "pool          $url, 64MiB"
done
# A second node does not steal the socket of the first.
run serve --size 64MiB --hugepages off --shm "$scratch/both.sock"
expect_refusal "both.sock"
grep -q "127.0.0.1 came" both.log || fail "the log does not say which host came: $(cat both.log)"

# ---- commands on tables leave those alone who live, and nothing of themselves

mkfifo slowly.jsonl
"$FARSIDE" import "$shm" users slowly.jsonl >slowly.out 2>slowly.err &
slow=$!
started+=("$slow")
exec 8>slowly.jsonl
printf '{"key":"grace","value":"rear admiral"}\n' >&8
living() { "$FARSIDE" status "$shm" --json --watch 0.001 | grep -o '"state":"live"' | wc -l; }
until [[ $(living) -ge 2 ]]; do # a pool has a session of its own
  kill -0 "$slow" 2>/dev/null || { fail "the import ended: $(cat slowly.err)"; break; }
  sleep 0.02 # and look again
done
before=$(living)
run table create "$shm" others --engine reference
expect_status 0
run table show "$shm" users
expect_status 0
run table drop "$shm" others
expect_status 0
[[ $(living) == "$before" ]] || fail "$before clients lived before commands on tables, and $(living) after"
"$FARSIDE" status "$shm" --json --watch 0.001 | grep -q '"deaths":0' || fail "a command cut off a client that lives"
exec 8>&-
wait "$slow" || fail "the import that was under way failed: $(cat slowly.err)"
run get "$shm" users grace
expect_out "rear admiral"

# ---- garbage on the port does no harm

port=${tcp##*:}
for garbage in "GET / HTTP/1.1" "$(head -c 300 /dev/zero | tr '\0' 'x')"; do
  exec 9<>"/dev/tcp/127.0.0.1/$port" && printf '%s\r\n\r\n' "$garbage" >&9 && cat <&9 >/dev/null
  exec 9>&-
done
run get "$tcp" users alan
expect_out bombe

# ---- a log that is not read holds up nothing

# start_unread ARG...: starts a node whose log is a pipe that is full.
start_unread() {
  dd if=/dev/zero of=unread.log bs=4096 count=1000 oflag=nonblock 2>/dev/null # as much as it takes
  : >unread.out
  "$FARSIDE" serve --hugepages off --listen tcp://127.0.0.1:0 "$@" >unread.out 2>unread.log </dev/null &
  node=$!
  started+=("$node")
  for ((look = 0; look < 1500; ++look)); do
    [[ ! -s unread.out ]] || break
    sleep 0.02 # and look again
  done
  read -r ready <unread.out || fail "a node whose log is not read does not start"
}
# Waits until the node has ended.
await_end() {
  for ((look = 0; look < 1500; ++look)); do
    kill -0 "$node" 2>/dev/null || return 0
    sleep 0.02 # and look again
  done
}
mkfifo unread.log
exec 8<>unread.log
start_unread --size 64MiB
run put "$(url_of tcp)" users ada countess --create
expect_status 0
kill -TERM "$node"
await_end
kill -KILL "$node" 2>/dev/null && fail "a node whose log is not read does not stop"
wait "$node" || fail "a node whose log is not read ended with $?"
# Not even its last words, when its file is cut short.
start_unread --size 64MiB --file cut.pool
truncate -s 0 cut.pool
run get "$(url_of tcp)" users ada
await_end
kill -KILL "$node" 2>/dev/null && fail "a node whose file was cut short waits for the reader of its log"
wait "$node"
ended=$?
[[ $ended == 3 ]] || fail "a node whose file was cut short, and whose log is not read, ended with $ended"
exec 8>&-

# ---- a node that stops, and one that is killed

stop_node "$both"
[[ $? == 0 ]] || fail "a node that was asked to stop ended with $?"
grep -q "stopped" both.log || fail "the log does not say that it stopped"
for url in "$tcp" "$shm"; do
  run get "$url" users alan
  expect_status 3
  [[ $(wc -l <"$err") == 1 ]] || fail "not one line on stderr: $(cat "$err")"
done

start_node kept --size 64MiB --file kept.pool --shm "$scratch/kept.sock" --listen tcp://127.0.0.1:0
tcp=$(url_of tcp)
run table create "$tcp" users --engine shard
run put "$tcp" users grace hopper
expect_status 0
kill -KILL "$node"
wait "$node" 2>/dev/null
start_node again --file kept.pool --shm "$scratch/kept.sock" --listen "$tcp"
run get "$tcp" users grace
expect_status 0
expect_out hopper
run get "shm:$scratch/kept.sock" users grace
expect_out hopper
stop_node "$node"
run fsck file:kept.pool
expect_status 0

# ---- a file that another process cuts short: the node says so, and does not vanish

start_node cut --file kept.pool --listen tcp://127.0.0.1:0
tcp=$(url_of tcp)
truncate -s 0 kept.pool
run get "$tcp" users grace
expect_status 3
ran="the node whose file was cut short"
wait "$node"
ended=$?
[[ $ended == 3 ]] || fail "it ended with $ended: $(cat cut.log)"
grep -qF "kept.pool was cut short by another process" cut.log || fail "it does not say why: $(cat cut.log)"

# ---- a process that writes nonsense to the memory that clients share (docs/layouts/shm.md)

# hold_lines SOCKET HOLDER: makes all lines held by this number.
hold_lines() {
  python3 - "$@" <<'END'
import mmap, socket, struct, sys
path, holder = sys.argv[1], int(sys.argv[2])
node = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
node.connect(path)
node.send(struct.pack("<8sII", b"far-shm1", 2, 0))
_, (control, _), _, _ = socket.recv_fds(node, 4096, 2)
memory = mmap.mmap(control, 4096 + 4096 * 8)
memory[4096:] = struct.pack("<Q", holder) * 4096
END
}
start_node odd --size 64MiB --shm "$scratch/odd.sock" --listen tcp://127.0.0.1:0
tcp=$(url_of tcp)
run table create "$tcp" users --engine shard
run put "$tcp" users grace hopper
# Of a slot without a client, and of the node itself: the node frees them.
freed=0
for holder in 3001 65535; do
  hold_lines "$scratch/odd.sock" "$holder"
  run get "$tcp" users grace
  expect_status 0
  expect_out hopper
  freed=$((freed + 1))
  for ((look = 0; look < 1500; ++look)); do # the node says it after it has freed them
    (($(grep -c "were held by no client" odd.log) < freed)) || break
    sleep 0.02 # and look again
  done
  ((look < 1500)) || fail "the log does not say that lines held by $holder were freed: $(cat odd.log)"
done
# Of a client that is there, which nothing frees: clients are told, and the node stops all the same.
"$FARSIDE" import "shm:$scratch/odd.sock" users - <slowly.jsonl >odd.out 2>odd.err &
started+=("$!")
exec 8>slowly.jsonl
until [[ $("$FARSIDE" status "$tcp" --json --watch 0.001 | grep -o '"state":"live"' | wc -l) -ge 2 ]]; do
  kill -0 "${started[-1]}" 2>/dev/null || { fail "the import ended: $(cat odd.err)"; break; }
  sleep 0.02 # and look again
done
hold_lines "$scratch/odd.sock" 1
for i in 1 2; do
  run get "$tcp" users grace
  expect_status 3
done
stop_node "$node"
[[ $? == 0 ]] || fail "a node whose lines were held did not stop in good order: $(cat odd.log)"
exec 8>&-

# ---- several nodes are one pool; one that is down takes only its keys with it

start_node a --size 64MiB --listen tcp://127.0.0.1:0
first=$node a=$(url_of tcp)
start_node b --size 64MiB --listen tcp://127.0.0.1:0
second=$node b=$(url_of tcp)
pool="$a,${b#tcp://}"
# To look at each of them first does not make them pools of their own.
run status "$a"
expect_status 0
run table list "$b"
expect_status 0
run table create "$pool" users --engine shard
expect_status 0
for i in {0..39}; do echo "{\"key\": \"k$i\", \"value\": \"v$i\"}"; done >records.jsonl
run import "$pool" users records.jsonl
expect_status 0
# A part of it, or another order, is not this pool.
for wrong in "$b" "$a" "$b,${a#tcp://}"; do
  run get "$wrong" users k1
  expect_status 3
  expect_err "in the order in which the pool was made"
done
kill -KILL "$second"
wait "$second" 2>/dev/null
found=0 lost=0
for i in {0..39}; do
  run get "$pool" users "k$i"
  if [[ $status == 0 ]]; then
    expect_out "v$i"
    found=$((found + 1))
  else
    expect_status 3
    expect_err "${b#tcp://}"
    lost=$((lost + 1))
  fi
done
((found > 0 && lost > 0)) || fail "of 40 keys $found were found and $lost not, with one of two nodes down"
# What the other node knows is shown, and which one is missing and why; the exit code tells.
run status "$pool"
expect_status 3
expect_out "node 1 (${b#tcp://}) is missing: "
expect_out "Connection refused"
expect_out "64MiB"
expect_err "node 1 (${b#tcp://}) is missing: "
[[ $(wc -l <"$err") == 1 ]] || fail "not one line on stderr: $(cat "$err")"
run status "$pool" --json
expect_status 3
expect_json 'o["missing"][0]["node"] == 1' 'o["nodes"][1]["missing"] and o["nodes"][1]["bytes"] is None' \
  'o["nodes"][0]["bytes"] == 64 << 20 and not o["nodes"][0]["missing"]'
run table list "$pool"
expect_status 3
expect_err "node 1 (${b#tcp://}) is missing: "
# A table is known at one of the nodes, by the hash of its name.
grep -q -e users -e "no tables at the nodes that can be reached" "$out" || fail "the list is odd: $(cat "$out")"
run table list "$pool" --json
expect_status 3
expect_json 'o["missing"][0]["node"] == 1'
run fsck "$pool"
expect_status 3
expect_err "all nodes are needed: node 1 (${b#tcp://}) is missing"
[[ $(wc -l <"$err") == 1 ]] || fail "not one line on stderr: $(cat "$err")"
# New memory at the old address is not the old memory.
start_node c --size 64MiB --listen "$b"
run get "$pool" users k1
expect_status 3
expect_err "new memory"
stop_node "$node"
stop_node "$first"

# ---- the unit file

# What a node asks the kernel for although the filter leaves out the groups that these calls belong to.
unit=$FARSIDE_SOURCE/packaging/systemd/farside.service.in
for call in landlock_create_ruleset landlock_restrict_self prlimit64 setrlimit setpriority; do
  grep -qE "^SystemCallFilter=[^~@]*\b$call\b" "$unit" || fail "the service may not call $call"
done
# What docs/serve.md promises, and what keeps the bytes of a pool in the pool.
for option in Type=notify DynamicUser=yes ProtectHome=yes ProtectSystem=strict NoNewPrivileges=yes \
  CapabilityBoundingSet= PrivateTmp=yes PrivateDevices=yes MemoryDenyWriteExecute=yes LimitCORE=0; do
  grep -qxF "$option" "$unit" || fail "the unit lacks $option"
done
# --hugepages on is checked against it.
grep -q "^ProcSubset=pid" "$unit" && fail "the service cannot read /proc/meminfo"
if command -v systemd-analyze >/dev/null; then
  sed "s#@farside_installed_binary@#$FARSIDE#" "$unit" >farside.service
  run_program systemd-analyze verify ./farside.service
  expect_status 0
  # Each option of a sandbox that systemd knows and the unit does not set has its reason there.
  if systemd-analyze security --offline=true --no-pager --json=short ./farside.service \
    >sandbox.json 2>/dev/null; then
    python3 - farside.service sandbox.json <<'END' || fail "the unit says nothing of options of the sandbox"
import json, re, sys
unit = open(sys.argv[1]).read()
options = json.load(open(sys.argv[2]))
assert len(options) > 50, "systemd-analyze says too little"
silent = {option["name"] for option in options if option["set"] is False
          and not re.search(rf"\b{re.split('[=/]', option['name'])[0]}=", unit)}
print("\n".join(sorted(silent)))
sys.exit(bool(silent))
END
  fi
fi
finish
