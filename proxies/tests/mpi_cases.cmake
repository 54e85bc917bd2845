# The player as a whole; each suite names its own cases.
find_program(UND_PYTHON3 python3)
if(NOT UND_PYTHON3)
  message(FATAL_ERROR "The tests of the player need python3; configure with -DBUILD_TESTING=OFF to leave them out")
endif()
# The samples and the methods are cases too.
file(GLOB und_cases CONFIGURE_DEPENDS samples/*.json ../methods/*.c)
file(GLOB scripts CONFIGURE_DEPENDS mpi_*.py)
list(FILTER scripts EXCLUDE REGEX "/mpi_support.py$")
foreach(script IN LISTS scripts)
  get_filename_component(suite "${script}" NAME_WE)
  string(REPLACE "mpi_" "" suite "${suite}")
  und_cases("${script}" names)
  foreach(name IN LISTS names)
    # python3 is looked up when the test runs: in the virtual environment there is jsonschema.
    add_test(NAME "mpi.${suite}.${name}" COMMAND env python3 -B "${script}" "${name}"
      "$<TARGET_FILE:understudy-replay>" "${MPIEXEC_EXECUTABLE}" "${CMAKE_CURRENT_BINARY_DIR}/cases")
    set_tests_properties("mpi.${suite}.${name}" PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77
      ENVIRONMENT "UND_FAKE_STRIPED=$<TARGET_FILE:fake_striped>;UND_PLANT=$<TARGET_FILE:plant>;UND_HANG=$<TARGET_FILE:hang>")
    # These look at the clock; the others mostly wait for ranks to start.
    if(suite STREQUAL "run" OR name STREQUAL "computes")
      set_tests_properties("mpi.${suite}.${name}" PROPERTIES RUN_SERIAL TRUE)
    endif()
  endforeach()
endforeach()
