if(TARGET adios::mpi)
  set(UND_METHOD_LIBRARIES adios::mpi)
  set(UND_METHOD_DEFINITIONS UND_HAVE_ADIOS)
endif()
