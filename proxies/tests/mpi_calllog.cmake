# The player that logs its calls in place of its I/O, for tests/test_calllog.py.
file(GLOB replay_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/proxies/programs/replay/*.c")
add_executable(calllog calllog.c "${PROJECT_SOURCE_DIR}/proxies/programs/replay.c" ${replay_sources} real_methods.c)
target_link_libraries(calllog PRIVATE understudy ${CMAKE_DL_LIBS} -Wl,--export-dynamic)
# The list of methods comes from this program, which renames the one of the build.
set_source_files_properties(real_methods.c PROPERTIES COMPILE_DEFINITIONS und_methods=und_real_methods
  INCLUDE_DIRECTORIES "${CMAKE_CURRENT_BINARY_DIR}/..")
foreach(call unlink unlinkat rename renameat mkdirat stat64 lstat64 fstatat64 open64 openat64 ftruncate64)
  target_link_options(calllog PRIVATE "-Wl,--wrap=${call}")
endforeach()
