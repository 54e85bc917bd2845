# For kernel-<application>.cmake: it writes by ADIOS and is measured like a generated skeleton, by the very same files.
# Without ADIOS it still builds, and says so.
get_filename_component(skel "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set(UND_PROGRAM_SOURCES "${skel}/programs/kernel/kernel.c")
set(UND_PROGRAM_INCLUDES "${skel}/programs")
if(TARGET adios::mpi)
  file(GLOB skeleton_sources CONFIGURE_DEPENDS "${skel}/skeleton/*.c")
  list(FILTER skeleton_sources EXCLUDE REGEX "(application|fortran)[^/]*$")
  list(APPEND UND_PROGRAM_SOURCES ${skeleton_sources})
  list(APPEND UND_PROGRAM_INCLUDES "${skel}/skeleton")
  set(UND_PROGRAM_LIBRARIES adios::mpi ${CMAKE_DL_LIBS})
  set(UND_PROGRAM_DEFINITIONS UND_HAVE_ADIOS)
endif()
