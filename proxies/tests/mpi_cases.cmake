# The player as a whole; each suite names its own cases.
find_program(UND_PYTHON3 python3)
if(NOT UND_PYTHON3)
  message(FATAL_ERROR "The tests of the player need python3; configure with -DBUILD_TESTING=OFF to leave them out")
endif()
# The samples and the methods are cases too.
file(GLOB und_cases CONFIGURE_DEPENDS samples/*.json)
list(APPEND und_cases ${method_sources})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS kinds.json)
file(GLOB scripts CONFIGURE_DEPENDS mpi_*.py)
list(FILTER scripts EXCLUDE REGEX "/mpi_support.py$")
# The methods whose libraries were found. A case decides by them whether it can run, not by what the player says.
set(und_built "")
foreach(source IN LISTS und_cases)
  if(source MATCHES "/methods/([a-z0-9_]+)\\.c$")
    set(method "${CMAKE_MATCH_1}")
    file(STRINGS "${source}" needs REGEX "UND_HAVE_" LIMIT_COUNT 1)
    get_source_file_property(defined "${source}"
      DIRECTORY "${PROJECT_SOURCE_DIR}/proxies" COMPILE_DEFINITIONS)
    if(NOT needs OR defined MATCHES "UND_HAVE_")
      string(APPEND und_built " ${method}")
    endif()
  endif()
endforeach()
foreach(script IN LISTS scripts)
  get_filename_component(suite "${script}" NAME_WE)
  string(REPLACE "mpi_" "" suite "${suite}")
  und_cases("${script}" names)
  foreach(name IN LISTS names)
    # python3 is looked up when the test runs: in the virtual environment there is jsonschema.
    add_test(NAME "mpi.${suite}.${name}" COMMAND env python3 -B "${script}" "${name}"
      "$<TARGET_FILE:understudy-replay>" "${MPIEXEC_EXECUTABLE}" "${CMAKE_CURRENT_BINARY_DIR}/cases")
    set_tests_properties("mpi.${suite}.${name}" PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77
      ENVIRONMENT "UND_FAKE_STRIPED=$<TARGET_FILE:fake_striped>;UND_PLANT=$<TARGET_FILE:plant>;UND_FAULT=$<TARGET_FILE:fault>;UND_MPICC=${MPI_C_COMPILER};UND_METHODS=${und_built}")
    # These look at the clock; the others mostly wait for ranks to start.
    if(suite STREQUAL "run" OR name MATCHES "^(computes$|keeps-rate)")
      set_tests_properties("mpi.${suite}.${name}" PROPERTIES RUN_SERIAL TRUE)
    endif()
  endforeach()
endforeach()
