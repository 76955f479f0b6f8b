# The guide's tour, command by command, as it stands there.
add_test(NAME e2e.tour COMMAND ${CMAKE_CURRENT_LIST_DIR}/tour_test.sh ${CMAKE_SOURCE_DIR}/docs/guide/tour.md
  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
set_tests_properties(e2e.tour PROPERTIES TIMEOUT 120)
