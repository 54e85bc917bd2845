# Makes the target hdf5::mpi from a parallel HDF5 that belongs to the MPI found, and says so where there is none.
#
# HDF5_ROOT and an MPI from outside the system (Spack, modules) lead to CMake's own search. With the system's MPI
# the flavour is asked for by name first: Debian keeps one HDF5 per MPI (hdf5-openmpi.pc, hdf5-mpich.pc) and the
# plain name may be the serial one.
option(UND_HDF5 "Play through parallel HDF5 where it is here" ON)

include(CheckCSourceCompiles)
include(CMakePushCheckState)

if(NOT UND_HDF5)
  message(STATUS "No method hdf5: UND_HDF5 is off")
  return()
endif()

add_library(hdf5_candidate INTERFACE IMPORTED GLOBAL)

if(NOT HDF5_ROOT AND NOT DEFINED ENV{HDF5_ROOT} AND MPI_C_COMPILER MATCHES "^(/usr)?/bin/")
  if(MPI_C_LIBRARIES MATCHES "mpich")
    pkg_check_modules(HDF5_FLAVOUR IMPORTED_TARGET hdf5-mpich)
  else()
    pkg_check_modules(HDF5_FLAVOUR IMPORTED_TARGET hdf5-openmpi)
  endif()
endif()

if(HDF5_FLAVOUR_FOUND)
  target_link_libraries(hdf5_candidate INTERFACE PkgConfig::HDF5_FLAVOUR MPI::MPI_C)
  set(hdf5_version "${HDF5_FLAVOUR_VERSION}")
else()
  set(HDF5_PREFER_PARALLEL ON)
  find_package(HDF5 COMPONENTS C)
  if(HDF5_FOUND)
    target_include_directories(hdf5_candidate SYSTEM INTERFACE ${HDF5_INCLUDE_DIRS})
    target_link_libraries(hdf5_candidate INTERFACE ${HDF5_LIBRARIES} MPI::MPI_C)
    set(hdf5_version "${HDF5_VERSION}")
  endif()
endif()

cmake_push_check_state(RESET)
set(CMAKE_REQUIRED_LIBRARIES hdf5_candidate)
set(CMAKE_REQUIRED_QUIET ON)
unset(UND_HDF5_IS_PARALLEL CACHE)  # asked anew each time: packages come and go
check_c_source_compiles("
  #include <mpi.h>
  #include <hdf5.h>
  #ifndef H5_HAVE_PARALLEL
  #error serial HDF5
  #endif
  int main(void) { return (int)H5Pset_fapl_mpio(H5P_DEFAULT, MPI_COMM_SELF, MPI_INFO_NULL); }
  " UND_HDF5_IS_PARALLEL)
cmake_pop_check_state()

if(UND_HDF5_IS_PARALLEL)
  add_library(hdf5::mpi ALIAS hdf5_candidate)
  message(STATUS "Parallel HDF5 ${hdf5_version}")
else()
  message(STATUS "No method hdf5: there is no parallel HDF5 built for this MPI")
endif()
