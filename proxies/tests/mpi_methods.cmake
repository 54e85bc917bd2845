# Each method alone, without the machine around it.
add_executable(mpi_methods mpi_methods.c)
target_link_libraries(mpi_methods PRIVATE understudy)
foreach(ranks 1 2 3 4)
  add_test(NAME "mpi.methods.${ranks}"
    COMMAND "${MPIEXEC_EXECUTABLE}" "${MPIEXEC_NUMPROC_FLAG}" ${ranks} "$<TARGET_FILE:mpi_methods>" "${CMAKE_CURRENT_BINARY_DIR}")
  set_tests_properties("mpi.methods.${ranks}" PROPERTIES TIMEOUT 600)
endforeach()
