# The precompiled headers: parsed once instead of by every file. A file still includes what it uses; the test
# tidy/headers compiles each header without them.
#
#   farside_precompiled          of the library
#   farside_guarded_precompiled  of the parts that are compiled with canaries (hardening.cmake)
#   farside_tests_precompiled    of the tests: the same, and GoogleTest

set(FARSIDE_PRECOMPILED_HEADERS
  <algorithm> <array> <atomic> <bit> <cassert> <cerrno> <charconv> <chrono> <cmath> <condition_variable>
  <coroutine> <cstddef> <cstdint> <cstdio> <cstdlib> <cstring> <deque> <exception> <filesystem> <functional>
  <iterator> <limits> <map> <memory> <mutex> <optional> <set> <span> <string> <string_view> <system_error>
  <thread> <tuple> <type_traits> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)

# farside_precompile(target [GUARDED] headers...): a library of nothing but a precompiled header.
function(farside_precompile target)
  cmake_parse_arguments(arg "GUARDED" "" "" ${ARGN})
  set(empty "${PROJECT_BINARY_DIR}/generated/${target}.cc")
  file(CONFIGURE OUTPUT "${empty}" CONTENT "// Only its precompiled header is of use.\n")
  add_library(${target} OBJECT EXCLUDE_FROM_ALL "${empty}")
  if(arg_GUARDED)
    farside_flags(${target} GUARDED)
  else()
    farside_flags(${target})
  endif()
  target_link_libraries(${target} PRIVATE fmt::fmt)
  target_precompile_headers(${target} PRIVATE ${arg_UNPARSED_ARGUMENTS})
endfunction()

farside_precompile(farside_precompiled ${FARSIDE_PRECOMPILED_HEADERS})
farside_precompile(farside_guarded_precompiled GUARDED ${FARSIDE_PRECOMPILED_HEADERS})
