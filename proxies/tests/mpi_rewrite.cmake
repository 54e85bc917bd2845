# For benchmarks/replay.py; as a test it only has to end well.
add_executable(mpi_rewrite mpi_rewrite.c)
target_link_libraries(mpi_rewrite PRIVATE understudy)
foreach(method posix mpiio)
  add_test(NAME "mpi.rewrite.${method}" COMMAND "${MPIEXEC_EXECUTABLE}" "${MPIEXEC_NUMPROC_FLAG}" 4
    "$<TARGET_FILE:mpi_rewrite>" -w "${CMAKE_CURRENT_SOURCE_DIR}/samples/shared.json" -o . -a ${method} -i 3)
  set_tests_properties("mpi.rewrite.${method}" PROPERTIES TIMEOUT 600 RUN_SERIAL TRUE)
endforeach()
