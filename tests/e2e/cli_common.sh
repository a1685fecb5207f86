# Sourced by the tests of the command line. FARSIDE is the binary.
#
#   run check --seeds 0
#   expect_status 2
#   expect_error "--seeds"
#   finish
set -u
unset FARSIDE_URL # tests say which pool they mean
: "${FARSIDE:?is the binary to test}"
[[ -x $FARSIDE ]] || {
  echo "there is no $FARSIDE"
  exit 1
}

FARSIDE=$(realpath "$FARSIDE") # tests change the folder

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
ran=nothing
status=0
out=$scratch/out
err=$scratch/err

fail() {
  printf 'FAILED: %s: %s\n' "$ran" "$*"
  failures=$((failures + 1))
}

finish() {
  ((failures == 0)) || {
    printf '%d expectations failed\n' "$failures"
    exit 1
  }
  exit 0
}

# Runs the binary with these arguments; leaves its exit code in $status and its output in the files $out and
# $err.
run() { run_program "$FARSIDE" "$@"; }
run_program() {
  ran="${1##*/} ${*:2}"
  "$@" >"$out" 2>"$err" </dev/null
  status=$?
}

expect_status() {
  [[ $status == "$1" ]] || fail "exit code $status instead of $1; stderr: $(head -c 500 "$err")"
}

# stdout, or stderr, has this text in it.
expect_out() { grep -qF -e "$1" "$out" || fail "stdout lacks '$1': $(head -c 500 "$out")"; }
expect_err() { grep -qF -e "$1" "$err" || fail "stderr lacks '$1': $(head -c 500 "$err")"; }
expect_no_out() { [[ ! -s $out ]] || fail "stdout is not empty: $(head -c 500 "$out")"; }
expect_no_err() { [[ ! -s $err ]] || fail "stderr is not empty: $(head -c 500 "$err")"; }
# Stdout is exactly these bytes, as printf writes them.
expect_exactly() {
  # shellcheck disable=SC2059
  printf "$1" | cmp -s - "$out" || fail "stdout is not '$1': $(head -c 500 "$out")"
}

# Wrong usage: exit code 2, and exactly one line on stderr, which has this text in it and says where help is.
expect_error() {
  expect_status 2
  expect_no_out
  [[ $(wc -l <"$err") == 1 ]] || fail "not one line on stderr: $(head -c 1000 "$err")"
  expect_err "$1"
  expect_err "--help')"
}

# stdout is one line, a JSON object `o` of which these Python expressions are true.
expect_json() {
  python3 - "$out" "$@" <<'END' || fail "the JSON is not as expected: $(head -c 500 "$out")"
import json, sys
text = open(sys.argv[1]).read()
assert text.count("\n") == 1 and text.endswith("\n"), "not one line"
o = json.loads(text)
assert isinstance(o, dict), "not an object"
wrong = [expression for expression in sys.argv[2:] if not eval(expression)]
print(*("does not hold: " + expression for expression in wrong), sep="\n", end="\n" if wrong else "")
sys.exit(len(wrong) > 0)
END
}

# A field of that object, for the shell.
json_field() { python3 -c 'import json, sys; o = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$out" "$1"; }

# The rest of the test needs terminals. Where none can be opened (a chroot without /dev/pts), it ends here:
# skipped, unless something has failed already.
need_terminal() {
  python3 -c 'import os; os.openpty()' 2>"$err" && return
  ((failures == 0)) || finish
  echo "skipped: the part that needs a terminal; none can be opened: $(tail -1 "$err")"
  exit 77
}

# Runs the binary on a terminal; what the terminal shows is left in $out.
run_on_terminal() {
  ran="${FARSIDE##*/} $* (on a terminal)"
  TERM=xterm python3 - "$out" "$FARSIDE" "$@" <<'END'
import os, pty, sys
shown = open(sys.argv[1], "wb")
def copy(descriptor):
    data = os.read(descriptor, 65536)
    shown.write(data)
    return data
silent = os.open(os.devnull, os.O_WRONLY)
os.dup2(silent, 1)
ended = pty.spawn(sys.argv[2:], copy)
shown.close()
sys.exit(os.waitstatus_to_exitcode(ended))
END
  status=$?
  : >"$err"
}

# What is left on the screen after run_on_terminal: text that was drawn over is gone, and so are colours and
# spaces at the ends of lines.
screen() {
  python3 - "$out" <<'END'
import re, sys
shown = open(sys.argv[1], encoding="utf-8", newline="").read().replace("\r\n", "\n")
for line in re.sub("\033\\[[0-9;]*m", "", shown).split("\n")[:-1]:
    drawn = []
    for text in line.split("\r"):
        drawn[:len(text)] = text
    print("".join(drawn).rstrip())
END
}

escape=$'\033'

# Could not run: exit code 3, and exactly one line on stderr, which has this text in it.
expect_refusal() {
  expect_status 3
  expect_no_out
  [[ $(wc -l <"$err") == 1 ]] || fail "not one line on stderr: $(head -c 1000 "$err")"
  expect_err "$1"
}

# Writes bytes into a file: poke FILE OFFSET HEX.
poke() {
  python3 -c 'import sys; f = open(sys.argv[1], "r+b"); f.seek(int(sys.argv[2])); f.write(bytes.fromhex(sys.argv[3]))' "$@"
}

# spoil FILE makes of a pool: version.pool, of another layout version; super.pool, with a damaged superblock;
# short.pool, cut off. And what never was one: noise.pool, empty.pool.
spoil() {
  cp "$1" version.pool && poke version.pool 8 63000000
  cp "$1" super.pool && poke super.pool 56 0000000000000000
  head -c 500000 "$1" >short.pool
  python3 -c 'import random; random.seed(1); open("noise.pool", "wb").write(random.randbytes(100000))'
  : >empty.pool
}

# remember FILE... and then expect_unchanged: no byte of them has changed.
remember() { sha256sum "$@" >"$scratch/remembered"; }
expect_unchanged() { sha256sum --quiet -c "$scratch/remembered" >/dev/null 2>&1 || fail "a file has changed"; }
