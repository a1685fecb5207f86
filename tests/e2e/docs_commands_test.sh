#!/usr/bin/env bash
# Given README.md and docs/operations.md. When the commands of their console blocks are run, in the order of
# the page. Expect that each succeeds and prints what the page shows below it. Ports and the name of the
# shared memory are replaced by free ones.
source "$(dirname "$0")/cli_common.sh"

top=${FARSIDE_SOURCE:-$(dirname "$0")/../..}
PATH=${FARSIDE%/*}:$PATH
pids=()
end_all() {
  for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null; done
  rm -rf "$scratch"
}
trap end_all EXIT

read -r first_port second_port < <(python3 -c '
import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(each.getsockname()[1] for each in sockets))')

# Replaces what may be in use on this machine; and the number of a job, which a script cannot foresee: the
# shell keeps the number of a job that has ended until it has told so.
localized() {
  sed "s/:7700/:$first_port/g; s/:7701/:$second_port/g" |
    sed "s#--shm pool#--shm $PWD/pool.sock#g; s#shm:pool#shm:$PWD/pool.sock#g" |
    sed 's/kill %1; wait/kill "${pids[-1]}" \&\& wait "${pids[-1]}"/'
}

# A command that ends in & is a memory node: it has begun when it says that it is ready.
run_in_background() {
  local log=node.${#pids[@]}.log
  : >"$log"
  eval "${1%&} >$log 2>&1 </dev/null &"
  pids+=($!)
  until grep -q '^ready ' "$log"; do
    kill -0 "${pids[-1]}" 2>/dev/null || { fail "it ended: $(cat "$log")"; return; }
    sleep 0.02 # and look again
  done
}

run_page() {
  local page=$1 command='' expected
  mkdir "$scratch/${page//\//_}"
  cd "$scratch/${page//\//_}" || exit 1
  mapfile -t lines < <(sed -n '/^```console/,/^```$/ p' "$top/$page" | localized)
  ((${#lines[@]} > 0)) || fail "no commands in $page"
  for line in "${lines[@]}"; do
    case $line in
      '```'*) command='' ;;
      '$ '*' &') ran=${line#'$ '} && run_in_background "$ran" ;;
      '$ '*)
        ran=${line#'$ '} command=$ran
        eval "$ran" >"$out" 2>"$err" </dev/null # for its quotes and pipes
        status=$?
        expect_status 0
        ;;
      *) [[ -z $command ]] || cat "$out" "$err" | grep -qxF -e "$line" || fail "it does not print: $line" ;;
    esac
  done
  unset FARSIDE_URL
}

run_page README.md
run_page docs/operations.md
finish
