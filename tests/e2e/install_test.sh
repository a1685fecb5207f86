#!/usr/bin/env bash
# Given a build tree. When it is installed to a scratch prefix, and that prefix is then moved.
# Expect that a small program and the examples build and run against it by find_package(farside), and by
# pkg-config.
set -euo pipefail

if [[ -n ${FARSIDE_SANITIZE:-} ]]; then
  echo "skipped: a sanitized library is not for installing"
  exit 77
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$FARSIDE_BUILD" --prefix "$scratch/first" >"$scratch/install.log" || {
  cat "$scratch/install.log"
  exit 1
}
mv "$scratch/first" "$scratch/moved"
prefix=$scratch/moved

expect_file() {
  compgen -G "$prefix/$1" >/dev/null || {
    echo "not installed: $1"
    exit 1
  }
}
expect_file include/farside/result.h
expect_file 'share/doc/farside/LICENSE'
expect_file bin/farside
"$prefix/bin/farside" --help >/dev/null

expect_file share/bash-completion/completions/farside
expect_file share/zsh/site-functions/_farside
cmp -s "$prefix/share/bash-completion/completions/farside" <("$prefix/bin/farside" completion bash) || {
  echo "the completion script is not that of the binary"
  exit 1
}

# The unit of the service starts the binary that was installed beside it.
expect_file lib/systemd/system/farside.service
started=$(sed -n 's/^ExecStart=\([^ ]*\) serve .*/\1/p' "$prefix/lib/systemd/system/farside.service")
[[ $started == "$scratch/first/bin/farside" ]] || {
  echo "the service starts '$started', which is not what was installed"
  exit 1
}

# Every public header is included, so one that needs a header of ours that is not installed is noticed.
mkdir "$scratch/consumer"
cd "$scratch/consumer"
{
  (cd "$prefix/include" && find farside -name '*.h' -printf '#include "%p"\n' | sort)
  cat <<'END'
#include <iostream>

farside::Result<int> Answer() { return 42; }
farside::Result<int> Failure() { return farside::Error(farside::ErrorCode::kNotFound, "no such table"); }

int main() {
  if (*Answer() != 42 || Failure().error().ToString() != "kNotFound: no such table") return 1;
  std::cout << "linked\n";
}
END
} >main.cc

cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
find_package(farside 0.1 REQUIRED)
add_executable(consumer main.cc)
target_link_libraries(consumer PRIVATE farside::farside)
END
cmake -G Ninja -S . -B by_cmake -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Debug
cmake --build by_cmake
[[ $(./by_cmake/consumer) == linked ]]

pc=$(find "$prefix" -name farside.pc)
export PKG_CONFIG_PATH=${pc%/*}
[[ $(pkg-config --modversion farside) == 0.1.* ]]
read -r -a flags < <(pkg-config --cflags --libs farside)
"${CXX:-c++}" -std=c++20 main.cc -o by_pkg_config "${flags[@]}"
[[ $(./by_pkg_config) == linked ]]

# The examples are programs of a stranger: they know the installed library only.
cmake -G Ninja -S "$FARSIDE_SOURCE/examples" -B examples -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Debug
cmake --build examples

run() {
  echo "== $1"
  "./examples/$1" | tee "$1.out"
}
expect_line() {
  grep -qxF "$2" "$1.out" || {
    echo "$1 does not say: $2"
    exit 1
  }
}
run hello
expect_line hello 'The capital of Japan is Tokyo.'
expect_line hello '  France -> Paris'
run counters
expect_line counters '4 threads counted to 4000.'
run batch
expect_line batch '  found 60 of 61'
expect_line batch 'a copy of nothing: absent is not there'
awk '/^MultiPut: 60 operations, / { found = $4 < 3 } END { exit !found }' batch.out || {
  echo "batch: an insert takes more than 3 trips"
  exit 1
}
run ranges
expect_line ranges '  S7/08:20  Market'
expect_line ranges 'next: Mill'
expect_line ranges 'the last S7 is S7/09:40'

# pkg-config knows all that the whole library needs, not only what a small program does.
"${CXX:-c++}" -std=c++20 "$FARSIDE_SOURCE/examples/hello.cc" -o hello_by_pkg_config "${flags[@]}"
./hello_by_pkg_config >/dev/null
