# Makes the target uring::library from liburing, and says so where there is none. Debian's liburing-dev, Spack's prefix or
# one's own is found by pkg-config (PKG_CONFIG_PATH, CMAKE_PREFIX_PATH). Linux alone has io_uring.
option(UND_URING "Play through io_uring where liburing is here" ON)

if(NOT UND_URING)
  message(STATUS "No method uring: UND_URING is off")
  return()
endif()

unset(__pkg_config_checked_liburing CACHE)  # asked anew each time: packages come and go
pkg_check_modules(liburing QUIET IMPORTED_TARGET GLOBAL liburing>=2.2)
if(NOT liburing_FOUND)
  message(STATUS "No method uring: there is no liburing 2.2 or newer")
  return()
endif()
if(NOT TARGET uring::library)
  add_library(uring::library ALIAS PkgConfig::liburing)
endif()
message(STATUS "liburing ${liburing_VERSION}, ${liburing_LIBDIR}")
