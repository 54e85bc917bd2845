# Calls that fail or do not return, to be preloaded by cases of mpi_fault.py and mpi_watch.py.
add_library(fault MODULE fault.c)
target_link_libraries(fault PRIVATE ${CMAKE_DL_LIBS})
if(TARGET uring::library)
  target_compile_definitions(fault PRIVATE UND_HAVE_URING)
  target_include_directories(fault SYSTEM PRIVATE $<TARGET_PROPERTY:uring::library,INTERFACE_INCLUDE_DIRECTORIES>)
endif()
