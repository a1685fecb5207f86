# What makes a mistake in our code harder to exploit; docs/performance.md says what it costs.
# tests/e2e/hardening_test.sh looks at the binary.
#
# farside_harden(target): of everything that we compile.
#
#   _FORTIFY_SOURCE=2          memcpy and the like know the size of the buffers that they are given
#   -fcf-protection=return     returns go where the call came from, on processors that check it. Linux does
#                              not check the targets of indirect calls in programs, and marking them would
#                              cost an instruction at the head of every function
#   -fPIE, -pie                the program lies at another address in every run
#   -z relro, -z now           what the dynamic linker fills in is read-only afterwards
#
# farside_guard(target): of the code that reads bytes of strangers: the backends with sockets and the command.
#
#   -fstack-protector-strong   a canary behind buffers on the stack
#
# Not in the code of operations, which has no such buffers but for short strings: canaries there, and
# _GLIBCXX_ASSERTIONS, cost more than they are worth. Packagers that want them everywhere set CMAKE_CXX_FLAGS.
#
# The sanitizers check more, and do not go together with some of it; so builds with them leave all of it out.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-fstack-protector-strong FARSIDE_HAS_STACK_PROTECTOR)
check_cxx_compiler_flag(-fcf-protection=return FARSIDE_HAS_CF_PROTECTION)

function(farside_harden target)
  target_compile_options(${target} PRIVATE
    -fPIE
    $<$<BOOL:${FARSIDE_HAS_CF_PROTECTION}>:-fcf-protection=return>
    # It needs an optimizing compiler; and some distributions define another level.
    $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE>
    $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_link_options(${target} PRIVATE -pie LINKER:-z,relro,-z,now)
  endif()
endfunction()

function(farside_guard target)
  target_compile_options(${target} PRIVATE $<$<BOOL:${FARSIDE_HAS_STACK_PROTECTOR}>:-fstack-protector-strong>)
endfunction()
