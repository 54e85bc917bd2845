# Plants links and files while a run opens its own, to be preloaded by cases of mpi_planted.py.
add_library(plant MODULE plant.c)
target_link_libraries(plant PRIVATE ${CMAKE_DL_LIBS})
