# A striped file system to be preloaded, and the program that tells what a directory is on.
add_library(fake_striped MODULE fake_striped.c)
target_link_libraries(fake_striped PRIVATE ${CMAKE_DL_LIBS})
set(script "${CMAKE_CURRENT_SOURCE_DIR}/storage_cases.py")
und_cases("${script}" names)
foreach(name IN LISTS names)
  add_test(NAME "storage.${name}" COMMAND env python3 -B "${script}" "${name}"
    "$<TARGET_FILE:understudy-storage>" "$<TARGET_FILE:fake_striped>" "${CMAKE_CURRENT_BINARY_DIR}/cases")
  set_tests_properties("storage.${name}" PROPERTIES TIMEOUT 600)
endforeach()
