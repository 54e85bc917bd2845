# Makes the target adios2::mpi from the C bindings of an ADIOS2 built with the MPI found, and says so where there is none.
#
# The package's own configuration is taken: Debian's libadios2-mpi-c-dev, Spack's prefix or one's own, by CMAKE_PREFIX_PATH
# or ADIOS2_ROOT.
option(UND_ADIOS2 "Play through ADIOS2 where it is here" ON)

include(CheckCSourceCompiles)
include(CheckLanguage)
include(CMakePushCheckState)

if(NOT UND_ADIOS2)
  message(STATUS "No method adios2: UND_ADIOS2 is off")
  return()
endif()

set(adios2_hints "")
if(ADIOS2_ROOT OR DEFINED ENV{ADIOS2_ROOT})
  set(adios2_hints HINTS ${ADIOS2_ROOT} ENV ADIOS2_ROOT)
endif()
check_language(CXX)
if(NOT CMAKE_CXX_COMPILER)
  unset(CMAKE_CXX_COMPILER CACHE)  # one may come
  message(STATUS "No method adios2: there is no C++ compiler, which ADIOS2's configuration enables")
  return()
endif()
unset(adios2_DIR CACHE)  # asked anew each time: packages come and go
find_package(adios2 2.8 QUIET CONFIG COMPONENTS C MPI ${adios2_hints})
if(NOT adios2_FOUND)
  set(adios2_why "there is no ADIOS2 2.8 or newer with its C bindings")
  if(adios2_CONSIDERED_CONFIGS)
    list(GET adios2_CONSIDERED_CONFIGS 0 adios2_considered)
    set(adios2_why "${adios2_considered} is of an ADIOS2 without MPI or C bindings, or older than 2.8")
  endif()
  message(STATUS "No method adios2: ${adios2_why}")
  return()
endif()

# The library of another MPI links, too: the names of those that it needs tell.
set(adios2_other_mpi FALSE)
get_target_property(adios2_library adios2::core_mpi LOCATION)
if(CMAKE_READELF AND adios2_library AND MPI_C_LIBRARIES)
  execute_process(COMMAND "${CMAKE_READELF}" -d "${adios2_library}" OUTPUT_VARIABLE adios2_needs ERROR_QUIET)
  if(adios2_needs MATCHES "NEEDED[^\n]*libmpi")
    set(adios2_other_mpi TRUE)
  endif()
  foreach(library IN LISTS MPI_C_LIBRARIES)
    execute_process(COMMAND "${CMAKE_READELF}" -d "${library}" OUTPUT_VARIABLE adios2_dynamic ERROR_QUIET)
    if(adios2_dynamic MATCHES "SONAME[^\n]*\\[([^]]*)\\]")
      string(FIND "${adios2_needs}" "[${CMAKE_MATCH_1}]" at)
      if(at GREATER -1)
        set(adios2_other_mpi FALSE)
      endif()
    endif()
  endforeach()
endif()

add_library(adios2_candidate INTERFACE IMPORTED GLOBAL)
target_link_libraries(adios2_candidate INTERFACE adios2::c_mpi MPI::MPI_C)
cmake_push_check_state(RESET)
set(CMAKE_REQUIRED_LIBRARIES adios2_candidate)
set(CMAKE_REQUIRED_QUIET ON)
unset(UND_ADIOS2_LINKS CACHE)
check_c_source_compiles("
  #include <mpi.h>
  #include <adios2_c.h>
  int main(void)
  {
    adios2_adios *adios = adios2_init_mpi(MPI_COMM_SELF);
    return adios2_open_new_comm(adios2_declare_io(adios, \"x\"), \"x\", adios2_mode_readRandomAccess, MPI_COMM_SELF) != 0;
  }
  " UND_ADIOS2_LINKS)
cmake_pop_check_state()

if(adios2_other_mpi)
  message(STATUS "No method adios2: ${adios2_library} was built for another MPI")
elseif(UND_ADIOS2_LINKS)
  add_library(adios2::mpi ALIAS adios2_candidate)
  message(STATUS "ADIOS2 ${adios2_VERSION}, ${adios2_DIR}")
else()
  message(STATUS "No method adios2: ADIOS2 of ${adios2_DIR} does not compile or link with this MPI")
endif()
