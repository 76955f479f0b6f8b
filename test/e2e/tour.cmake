# The README's five minutes, command by command, as they stand there.
add_test(NAME e2e.readme COMMAND ${CMAKE_CURRENT_LIST_DIR}/readme_test.sh ${CMAKE_SOURCE_DIR}/README.md
  ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
set_tests_properties(e2e.readme PROPERTIES TIMEOUT 120)
