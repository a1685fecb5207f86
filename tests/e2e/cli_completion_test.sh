#!/usr/bin/env bash
# Given the completion scripts that the binary prints. When a shell asks them.
# Expect that every command, and every option that the help of a command has, is offered there.
source "$(dirname "$0")/cli_common.sh"

# The commands, and the options, that a help lists.
commands_of() { sed -n '/^Commands:/,/^$/ s/^  \([a-z]*\) .*/\1/p' "$1"; }
options_of() { grep -oE '^  (-[a-z],)?--[a-z0-9-]+' "$1" | tr ', ' '\n\n' | grep -e '^-'; }

run completion bash
expect_status 0
expect_no_err
cp "$out" "$scratch/bash_completion"
# shellcheck disable=SC1091
source "$scratch/bash_completion" || fail "bash does not take the script"
run completion zsh
expect_status 0
expect_no_err
cp "$out" "$scratch/_farside"

# What bash is offered for the last of these words.
offered() {
  COMP_WORDS=(farside "$@")
  COMP_CWORD=$#
  COMPREPLY=()
  _farside
  printf '%s\n' "${COMPREPLY[@]}"
}
expect_offer() { # WORD WORDS...
  local word=$1
  shift
  grep -qxF -e "$word" <(offered "$@") || fail "bash is not offered '$word' after 'farside $*': $(offered "$@" | tr '\n' ' ')"
}
# The part of the zsh script for a command.
part_for_zsh() { sed -n "/^    '$1')\$/,/^      ;;\$/p" "$scratch/_farside"; }

check_command() { # the words of a command; none for the program
  local path="$*" found=0
  run "$@" --help
  expect_status 0
  cp "$out" "$scratch/help"
  for name in $(commands_of "$scratch/help"); do
    expect_offer "$name" "$@" ""
    expect_offer "$name" "$@" "${name:0:2}"
    part_for_zsh "$path" | grep -qF "'$name:" || fail "zsh is not offered the command '$path $name'"
    check_command "$@" "$name"
    found=$((found + 1))
  done
  run "$@" --help
  for option in $(options_of "$out"); do
    expect_offer "$option" "$@" "${option:0:${#option}-1}"
    part_for_zsh "$path" | grep -qE -e "'$option=?\\[" || fail "zsh is not offered '$option' after 'farside $path'"
    found=$((found + 1))
  done
  ((found > 0)) || fail "'$path' has no options in its help"
}
check_command

# ---- names that Farside knows
for engine in shard chime sephash nessie continuity reference; do
  expect_offer "$engine" check --engine ""
  expect_offer "$engine" table create file:a users --engine "${engine:0:1}"
done
expect_offer raw bench --engine r
expect_offer shard-table3 paper shard-t
expect_offer zsh completion ""
expect_offer fsck help f
[[ -z $(offered bench --records "") ]] || fail "something is offered where a number belongs"
run completion fish
expect_error "there is no completion for 'fish'; there is: bash, zsh"

# ---- zsh itself, where it is installed
if command -v zsh >/dev/null; then
  run_program zsh -n "$scratch/_farside"
  expect_status 0
  run_program zsh -f -c "autoload -Uz compinit && compinit -D && source '$scratch/_farside' && print \$_comps[farside]"
  expect_status 0
  expect_exactly '_farside\n'
fi

finish
