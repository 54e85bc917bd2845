include("${CMAKE_CURRENT_LIST_DIR}/kernel/kernel.cmake")
