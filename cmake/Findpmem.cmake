# Finds libpmem, which comes without a CMake package of its own. Makes pmem::pmem.
find_path(pmem_INCLUDE_DIR libpmem.h)
find_library(pmem_LIBRARY pmem)
mark_as_advanced(pmem_INCLUDE_DIR pmem_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(pmem REQUIRED_VARS pmem_LIBRARY pmem_INCLUDE_DIR)

if(pmem_FOUND AND NOT TARGET pmem::pmem)
  add_library(pmem::pmem UNKNOWN IMPORTED)
  set_target_properties(pmem::pmem PROPERTIES
    IMPORTED_LOCATION "${pmem_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${pmem_INCLUDE_DIR}")
endif()
