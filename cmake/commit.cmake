# Run at each build: writes the git commit of the source to commit.h where it has changed.
# -DSOURCE=... -DHEADER=...
cmake_minimum_required(VERSION 3.18)
set(commit "")
find_program(GIT git)
if(GIT)
  execute_process(COMMAND "${GIT}" rev-parse --show-prefix WORKING_DIRECTORY "${SOURCE}"
    OUTPUT_VARIABLE prefix RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  # A source tree inside of another project's repository has no commit of its own.
  if(status EQUAL 0 AND prefix STREQUAL "")
    execute_process(COMMAND "${GIT}" describe --always --dirty --abbrev=64 --exclude=*
      WORKING_DIRECTORY "${SOURCE}" OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
file(CONFIGURE OUTPUT "${HEADER}" @ONLY CONTENT "#define UND_COMMIT \"@commit@\"\n")
