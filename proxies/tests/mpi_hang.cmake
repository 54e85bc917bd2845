# A call that does not return, to be preloaded by cases of mpi_watch.py.
add_library(hang MODULE hang.c)
target_link_libraries(hang PRIVATE ${CMAKE_DL_LIBS})
