# farside_version_header(target): generates farside_version.h with the version of the project and the
# commit it is built from, for that target alone. The header is written again when HEAD moves, and
# only the file that includes it (tools/common/version.cc) is compiled again.

set(FARSIDE_VERSION_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/write_version.cmake")

function(farside_version_header target)
  set(header "${PROJECT_BINARY_DIR}/generated/farside_version.h")

  # The log of HEAD changes with every commit and checkout. An unpacked archive has none.
  find_package(Git QUIET)
  set(head "")
  if(Git_FOUND AND EXISTS "${PROJECT_SOURCE_DIR}/.git")
    execute_process(
      COMMAND "${GIT_EXECUTABLE}" rev-parse --git-path logs/HEAD
      WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
      OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(head)
      cmake_path(ABSOLUTE_PATH head BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
      if(NOT EXISTS "${head}")
        set(head "")
      endif()
    endif()
  endif()

  add_custom_command(
    OUTPUT "${header}"
    COMMAND "${CMAKE_COMMAND}"
      "-DSOURCE=${PROJECT_SOURCE_DIR}" "-DGIT=${GIT_EXECUTABLE}" "-DVERSION=${PROJECT_VERSION}"
      "-DHEADER=${header}" -P "${FARSIDE_VERSION_SCRIPT}"
    DEPENDS "${FARSIDE_VERSION_SCRIPT}" ${head}
    COMMENT "Writing farside_version.h"
    VERBATIM)
  target_sources(${target} PRIVATE "${header}")
  target_include_directories(${target} PRIVATE "${PROJECT_BINARY_DIR}/generated")
endfunction()
