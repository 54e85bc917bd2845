# For benchmarks/replay.py; as a test it has to end well, with its files where -o says.
add_executable(mpi_rewrite mpi_rewrite.c)
target_link_libraries(mpi_rewrite PRIVATE understudy)
foreach(method posix mpiio)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/rewrite.${method}")
  add_test(NAME "mpi.rewrite.${method}.folder" COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}")
  add_test(NAME "mpi.rewrite.${method}" COMMAND "${MPIEXEC_EXECUTABLE}" "${MPIEXEC_NUMPROC_FLAG}" 4
    "$<TARGET_FILE:mpi_rewrite>" -w "${CMAKE_CURRENT_SOURCE_DIR}/samples/shared.json" -o "${folder}" -a ${method}
    -i 3 -k)
  add_test(NAME "mpi.rewrite.${method}.files" COMMAND "${CMAKE_COMMAND}" -E rm "${folder}/field.000000.f0"
    "${folder}/field.000000.f1")
  set_tests_properties("mpi.rewrite.${method}.folder" PROPERTIES FIXTURES_SETUP "rewrite.${method}")
  set_tests_properties("mpi.rewrite.${method}" PROPERTIES TIMEOUT 600 RUN_SERIAL TRUE
    FIXTURES_REQUIRED "rewrite.${method}" FIXTURES_SETUP "rewritten.${method}")
  set_tests_properties("mpi.rewrite.${method}.files" PROPERTIES FIXTURES_REQUIRED "rewritten.${method}")
endforeach()
