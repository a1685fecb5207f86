#!/usr/bin/env bash
# The binary has what makes mistakes harder to exploit (cmake/hardening.cmake).
. "$(dirname "$0")/cli_common.sh"

[[ -z ${FARSIDE_SANITIZE:-} ]] || {
  echo "skipped: builds with sanitizers leave it out"
  exit 77
}
command -v readelf >/dev/null || {
  echo "skipped: there is no readelf"
  exit 77
}

# expect_elf OPTION TEXT WHY: readelf shows this text.
expect_elf() {
  run_program readelf --wide "$1" "$FARSIDE"
  expect_status 0
  grep -qE -e "$2" "$out" || fail "$3"
}

expect_elf --file-header 'Type: +DYN' "it does not lie at another address in every run (-pie)"
expect_elf --program-headers 'GNU_RELRO' "tables of the dynamic linker stay writable (-z relro)"
expect_elf --dynamic 'BIND_NOW|FLAGS_1.*NOW' "functions are looked up late (-z now)"
expect_elf --dyn-syms '__stack_chk_fail' "there are no canaries on the stack (-fstack-protector-strong)"
expect_elf --dyn-syms '__(mem|str|read|v?snprintf|vfprintf)[a-z]*_chk' "sizes of buffers are not checked (_FORTIFY_SOURCE)"
expect_elf --program-headers 'GNU_STACK.* RW ' "the stack is executable"
# The compiler marks each object whose returns it protects. The program is marked only if all of its objects
# are, and crt1.o of some systems is not; so we look at our own.
if [[ $(uname -m) == x86_64 ]] &&
  grep -q "^FARSIDE_HAS_CF_PROTECTION:.*=1\$" "$FARSIDE_BUILD/CMakeCache.txt"; then
  for library in "$FARSIDE_BUILD"/{src,tools}/lib*.a; do
    run_program readelf --wide --notes "$library"
    expect_status 0
    objects=$(grep -c '^File: ' "$out")
    marked=$(grep -c 'x86 feature: .*SHSTK' "$out")
    ((objects > 0 && marked == objects)) ||
      fail "returns of $marked of $objects objects are protected (-fcf-protection=return)"
  done
fi
finish
