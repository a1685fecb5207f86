# How Farside's targets are made.
#
#   farside_layer(NAME fabric FOLDER src/fabric DEPS base LIBS fmt::fmt)
#   farside_mutable_layer(NAME pool FOLDER src/pool DEPS fabric)
#   farside_engines(engines)
#   farside_tests(NAME crash SOURCES tests/engines/chime/crash_test.cc)
#
# Sources are found, not listed: a new file in a folder is picked up by the next build. A folder
# without .cc files becomes a header-only target, so an empty folder is no error.

# Flags of every target we compile. They are ours alone: nothing here reaches a user of the library.
# PRECOMPILED names the precompiled header of the target (see precompiled.cmake). GUARDED: it reads bytes of
# strangers (see hardening.cmake).
function(farside_defaults target)
  cmake_parse_arguments(arg "GUARDED" "PRECOMPILED" "" ${ARGN})
  set(guarded "")
  if(arg_GUARDED)
    set(guarded GUARDED)
    set(arg_PRECOMPILED farside_guarded_precompiled)
  elseif(NOT arg_PRECOMPILED)
    set(arg_PRECOMPILED farside_precompiled)
  endif()
  farside_flags(${target} ${guarded})
  target_precompile_headers(${target} REUSE_FROM ${arg_PRECOMPILED})
  # fmt is in the precompiled header, so its macros have to be the same everywhere.
  target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
endfunction()

function(farside_flags target)
  cmake_parse_arguments(arg "GUARDED" "" "" ${ARGN})
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow
    $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>  # ccache stores what a precompiled header helped to compile
    -Wno-missing-field-initializers  # Options{.size = 4} leaves the rest at their defaults on purpose
    $<$<BOOL:${FARSIDE_WERROR}>:-Werror>)
  if(FARSIDE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${FARSIDE_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${FARSIDE_SANITIZE})
  elseif(FARSIDE_HARDEN)
    farside_harden(${target})
    if(arg_GUARDED)
      farside_guard(${target})
    endif()
  endif()
endfunction()

# Test code is checked and optimized less than the code that it tests, so that it compiles faster.
function(farside_test_flags target)
  # _FORTIFY_SOURCE asks for every answer of write.
  target_compile_options(${target} PRIVATE -Wno-unused-result)
  if(FARSIDE_SANITIZE)
    # g++ 12 sees uninitialized members in <regex> where the sanitizers have put their checks.
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized -fno-sanitize=null,alignment,vptr)
  else()
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# All .cc files of the folders (relative to the top), with subfolders if `recurse` is true.
function(farside_glob out recurse)
  set(mode GLOB)
  if(recurse)
    set(mode GLOB_RECURSE)
  endif()
  list(TRANSFORM ARGN PREPEND "${PROJECT_SOURCE_DIR}/")
  list(TRANSFORM ARGN APPEND "/*.cc")
  file(${mode} found CONFIGURE_DEPENDS ${ARGN})
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# farside_layer(NAME n FOLDER folder... [RECURSE] [SOURCES files...] [DEPS layers...] [LIBS libraries...]
#               [DEFINITIONS d...] [GUARDED] [INSTALL])
#
# Makes the target farside_<n> (alias farside::<n>). SOURCES are files outside of its folders. DEPS are other
# layers by their short names and are passed on to users of the layer; LIBS are third-party libraries used
# inside the .cc files only. GUARDED as for farside_defaults. INSTALL makes it part of the installed library.
function(farside_layer)
  cmake_parse_arguments(arg "RECURSE;GUARDED;INSTALL" "NAME" "FOLDER;SOURCES;DEPS;LIBS;DEFINITIONS" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_FOLDER)
    message(FATAL_ERROR "farside_layer: NAME and FOLDER are needed; not understood: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(target farside_${arg_NAME})
  farside_glob(sources "${arg_RECURSE}" ${arg_FOLDER})
  list(APPEND sources ${arg_SOURCES})
  list(TRANSFORM arg_DEPS PREPEND farside_)

  if(sources)
    add_library(${target} STATIC ${sources})
    if(arg_GUARDED)
      farside_defaults(${target} GUARDED)
    else()
      farside_defaults(${target})
    endif()
    set(scope PUBLIC)
    target_link_libraries(${target} PUBLIC ${arg_DEPS} PRIVATE ${arg_LIBS})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
    target_compile_features(${target} INTERFACE cxx_std_20)
    target_link_libraries(${target} INTERFACE ${arg_DEPS} ${arg_LIBS})
  endif()
  add_library(farside::${arg_NAME} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${arg_NAME})
  target_compile_definitions(${target} ${scope} ${arg_DEFINITIONS})
  target_include_directories(${target} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

  if(arg_INSTALL)
    install(TARGETS ${target} EXPORT farsideTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    set_property(GLOBAL APPEND PROPERTY FARSIDE_INSTALLED_LAYERS ${target})
  endif()
  set_property(GLOBAL APPEND PROPERTY FARSIDE_LAYERS ${target})
endfunction()

# farside_mutable_layer(NAME n FOLDER folder... [RECURSE] [SOURCES ...] [DEPS ...] [MUTABLE_DEPS ...]
#                       [LIBS ...] [INSTALL])
#
# A layer with planted bugs in it. It is compiled twice from the same sources: farside_<n> for everybody,
# and farside_<n>_mutants, in which the bugs can be switched on, for the tests that prove that the
# checkers catch them. MUTABLE_DEPS are layers of this sort; each form depends on the same form of them. The
# second form is never installed, and no program links both.
function(farside_mutable_layer)
  cmake_parse_arguments(arg "RECURSE;INSTALL" "NAME" "FOLDER;SOURCES;DEPS;MUTABLE_DEPS;LIBS" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_FOLDER)
    message(FATAL_ERROR "farside_mutable_layer: NAME and FOLDER are needed; not understood: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(recurse "")
  if(arg_RECURSE)
    set(recurse RECURSE)
  endif()
  set(install "")
  if(arg_INSTALL)
    set(install INSTALL)
  endif()
  get_property(layers GLOBAL PROPERTY FARSIDE_LAYERS)
  set(same FOLDER ${arg_FOLDER} ${recurse} SOURCES ${arg_SOURCES} LIBS ${arg_LIBS})
  farside_layer(NAME ${arg_NAME} ${same} DEPS ${arg_DEPS} ${arg_MUTABLE_DEPS} ${install})
  list(TRANSFORM arg_MUTABLE_DEPS APPEND _mutants)
  farside_layer(NAME ${arg_NAME}_mutants ${same} DEPS ${arg_DEPS} ${arg_MUTABLE_DEPS} DEFINITIONS FARSIDE_MUTANTS=1)
  set_target_properties(farside_${arg_NAME}_mutants PROPERTIES EXCLUDE_FROM_ALL ON)
  # Programs choose between the two forms, so neither is in the list of layers.
  set_property(GLOBAL PROPERTY FARSIDE_LAYERS ${layers})
  get_property(mutable_layers GLOBAL PROPERTY FARSIDE_MUTABLE_LAYERS)
  set_property(GLOBAL PROPERTY FARSIDE_MUTABLE_LAYERS farside_${arg_NAME} ${mutable_layers})  # users first
endfunction()

# farside_engines(out)
#
# Makes the target farside_index_<n> for every folder src/index/<n> with an engine.cc, and `engine_list`, the
# file with the list of them for `store` (from src/store/engine_list.cc.in). Sets `out` to the short names of
# the targets. A folder inside of a folder (src/index/baseline/race) is an engine too: its namespace and its
# target have both names.
function(farside_engines out)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/src/index"
    "${PROJECT_SOURCE_DIR}/src/index/*/engine.cc")
  set(FARSIDE_ENGINE_DECLARATIONS "")
  set(entries "")
  set(names "")
  set(folders "")
  foreach(file IN LISTS found)
    cmake_path(GET file PARENT_PATH folder)
    string(REPLACE "/" "_" name "index_${folder}")
    string(REPLACE "/" "::" space "index::${folder}")
    farside_mutable_layer(NAME ${name} FOLDER src/index/${folder} MUTABLE_DEPS index LIBS fmt::fmt INSTALL)
    list(APPEND names ${name})
    list(APPEND folders ${folder})
    list(APPEND entries "${space}::Register()")
    string(APPEND FARSIDE_ENGINE_DECLARATIONS "namespace farside::${space} {\nEngineEntry Register();\n}\n")
  endforeach()
  set_property(GLOBAL PROPERTY FARSIDE_ENGINE_FOLDERS ${folders})
  list(JOIN entries ", " FARSIDE_ENGINE_ENTRIES)
  set(list "${PROJECT_BINARY_DIR}/generated/engine_list.cc")
  configure_file("${PROJECT_SOURCE_DIR}/src/store/engine_list.cc.in" "${list}" @ONLY)
  set(engine_list "${list}" PARENT_SCOPE)
  set(${out} ${names} PARENT_SCOPE)
endfunction()

# What all code of tests is compiled with: the libraries that it includes, but for those that have mutants.
function(farside_test_defaults target)
  farside_defaults(${target} PRECOMPILED farside_tests_precompiled)
  farside_test_flags(${target})
  get_property(layers GLOBAL PROPERTY FARSIDE_LAYERS)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE ${layers} fmt::fmt nlohmann_json::nlohmann_json OpenSSL::Crypto
    GTest::gmock GTest::gtest Threads::Threads)
endfunction()

# farside_tests(NAME crash SOURCES file... [MUTANTS] [LIBS ...])
#
# One GoogleTest program farside_<n>_tests, linked with all layers and all engines; with MUTANTS, in the form
# in which planted bugs can be switched on. Its tests carry the label <n> in ctest.
function(farside_tests)
  cmake_parse_arguments(arg "MUTANTS" "NAME" "SOURCES;LIBS" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_SOURCES)
    message(FATAL_ERROR "farside_tests: NAME and SOURCES are needed; not understood: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  get_property(mutable_layers GLOBAL PROPERTY FARSIDE_MUTABLE_LAYERS)
  if(arg_MUTANTS)
    list(TRANSFORM mutable_layers APPEND _mutants)
  endif()

  set(target farside_${arg_NAME}_tests)
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LIBS} farside_test_support)
  farside_test_defaults(${target})
  target_link_libraries(${target} PRIVATE ${mutable_layers} GTest::gmock_main)
  gtest_discover_tests(${target}
    TEST_PREFIX "${arg_NAME}/"
    DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS ${arg_NAME} TIMEOUT 300
      ENVIRONMENT "FARSIDE_SOURCE=${PROJECT_SOURCE_DIR}"  # a list would be taken apart
      ENVIRONMENT_MODIFICATION "FARSIDE_BINARY=set:${PROJECT_BINARY_DIR}/farside")
endfunction()
