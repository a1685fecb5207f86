# Compiles through ccache if it is installed, so that a second clone on the same machine, or a folder that was
# removed and is built again, takes over what was compiled before.
#
# base_dir and no hash_dir: the same file of another clone is the same file. The sloppiness is what ccache
# asks for before it stores precompiled headers; no source of ours uses __DATE__, __TIME__ or __TIMESTAMP__.
find_program(FARSIDE_CCACHE ccache DOC "ccache, used if it is found")
mark_as_advanced(FARSIDE_CCACHE)

if(FARSIDE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER env
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
    CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${FARSIDE_CCACHE})
endif()
