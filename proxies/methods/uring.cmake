include("${PROJECT_SOURCE_DIR}/cmake/liburing.cmake")
# O_DIRECT and pipe2 are not in POSIX.
set(UND_METHOD_DEFINITIONS _GNU_SOURCE)
if(TARGET uring::library)
  set(UND_METHOD_LIBRARIES uring::library)
  list(APPEND UND_METHOD_DEFINITIONS UND_HAVE_URING="${liburing_VERSION}")
endif()
