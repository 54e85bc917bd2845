# Makes the target adios::mpi from ADIOS 1.13 with its MPI library, and says so where there is none.
#
# What pkg-config and adios_config say of Debian's package names another directory and libraries whose development
# files are not installed with it. So the library is looked for (Debian keeps one per MPI; Spack's prefix comes by
# CMAKE_PREFIX_PATH or ADIOS_ROOT) and linked with whatever it may have been built with and is here.
option(UND_ADIOS "Play through ADIOS where it is here" ON)

include(CheckCSourceCompiles)
include(CMakePushCheckState)

if(MPI_C_LIBRARIES MATCHES "mpich")
  set(adios_flavour mpich)
else()
  set(adios_flavour openmpi)
endif()

# What the archive needs: HDF5 and NetCDF of the same MPI, then compressors. Names with a dot are run-time
# libraries, for places where the development package is not there.
unset(ADIOS_LIBRARY CACHE)  # asked anew each time: packages come and go
find_library(ADIOS_LIBRARY NAMES adios HINTS ENV ADIOS_ROOT PATH_SUFFIXES lib lib64 adios/${adios_flavour})
find_path(ADIOS_INCLUDE_DIR NAMES adios.h HINTS ENV ADIOS_ROOT PATH_SUFFIXES include)
mark_as_advanced(ADIOS_LIBRARY ADIOS_INCLUDE_DIR)
set(adios_needs "")
foreach(names
    "hdf5_hl;hdf5_${adios_flavour}_hl" "hdf5;hdf5_${adios_flavour}"
    "netcdf_mpi;libnetcdf_mpi.so.19;libnetcdf_mpi.so.22;netcdf;libnetcdf.so.19;libnetcdf.so.22"
    "blosc;libblosc.so.1" "lz4;liblz4.so.1" "sz;libsz.so.2" "bz2;libbz2.so.1.0" "z;libz.so.1"
    "ibverbs;libibverbs.so.1")
  list(GET names 0 name)
  unset(ADIOS_${name}_LIBRARY CACHE)
  find_library(ADIOS_${name}_LIBRARY NAMES ${names} NAMES_PER_DIR
    PATH_SUFFIXES lib lib64 hdf5/${adios_flavour} netcdf/mpi)
  mark_as_advanced(ADIOS_${name}_LIBRARY)
  if(ADIOS_${name}_LIBRARY)
    list(APPEND adios_needs "${ADIOS_${name}_LIBRARY}")
  endif()
endforeach()

unset(UND_ADIOS_LINKS CACHE)
if(UND_ADIOS AND ADIOS_LIBRARY AND ADIOS_INCLUDE_DIR)
  find_package(Threads REQUIRED)
  add_library(adios_candidate INTERFACE IMPORTED GLOBAL)
  target_include_directories(adios_candidate SYSTEM INTERFACE "${ADIOS_INCLUDE_DIR}")
  target_link_libraries(adios_candidate INTERFACE "${ADIOS_LIBRARY}" ${adios_needs} MPI::MPI_C Threads::Threads m
    ${CMAKE_DL_LIBS})
  cmake_push_check_state(RESET)
  set(CMAKE_REQUIRED_LIBRARIES adios_candidate)
  set(CMAKE_REQUIRED_QUIET ON)
  check_c_source_compiles("
    #include <mpi.h>
    #include <adios.h>
    #include <adios_read.h>
    int main(void)
    {
      return adios_init_noxml(MPI_COMM_WORLD) + (adios_read_open_file(\"x\", ADIOS_READ_METHOD_BP, MPI_COMM_WORLD) != 0);
    }
    " UND_ADIOS_LINKS)
  cmake_pop_check_state()
endif()

if(UND_ADIOS_LINKS)
  add_library(adios::mpi ALIAS adios_candidate)
  message(STATUS "ADIOS ${ADIOS_LIBRARY}")
elseif(UND_ADIOS AND ADIOS_LIBRARY)
  message(STATUS "No method adios: ${ADIOS_LIBRARY} does not link with this MPI, HDF5 and NetCDF")
else()
  message(STATUS "No method adios: ADIOS 1.13 is not here, or UND_ADIOS is off")
endif()
