# The player that logs its calls in place of its I/O, for tests/call_logs.py.
file(GLOB replay_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/proxies/programs/replay/*.c")
# The list of methods comes from this program, which renames the one of the build.
set(real_methods "${PROJECT_BINARY_DIR}/proxies/methods.c")
set_source_files_properties("${real_methods}" PROPERTIES COMPILE_DEFINITIONS und_methods=und_real_methods)
add_executable(calllog calllog.c "${PROJECT_SOURCE_DIR}/proxies/programs/replay.c" ${replay_sources} "${real_methods}")
target_link_libraries(calllog PRIVATE understudy ${CMAKE_DL_LIBS} -Wl,--export-dynamic)
foreach(call unlink unlinkat rename renameat mkdirat stat64 lstat64 fstatat64 open64 openat64 ftruncate64)
  target_link_options(calllog PRIVATE "-Wl,--wrap=${call}")
endforeach()
