# For kernel-<application>.cmake: it writes by ADIOS and is measured like a generated skeleton, by the very same files.
# Without ADIOS it still builds, and says so.
set(UND_PROGRAM_SOURCES programs/kernel/kernel.c)
set(UND_PROGRAM_INCLUDES programs)
if(TARGET adios::mpi)
  set(skeleton "${PROJECT_SOURCE_DIR}/python/understudy/skel/runtime")
  list(APPEND UND_PROGRAM_SOURCES "${skeleton}/skeleton.c")
  list(APPEND UND_PROGRAM_INCLUDES "${skeleton}")
  set(UND_PROGRAM_LIBRARIES adios::mpi ${CMAKE_DL_LIBS})
  set(UND_PROGRAM_DEFINITIONS UND_HAVE_ADIOS)
endif()
