include("${CMAKE_CURRENT_SOURCE_DIR}/programs/kernel/kernel.cmake")
