file(GLOB UND_PROGRAM_SOURCES CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/programs/replay/*.c")
# Libraries find the calls of replay/calls.c, also those that are loaded later.
set(UND_PROGRAM_LIBRARIES ${CMAKE_DL_LIBS} -Wl,--export-dynamic)
