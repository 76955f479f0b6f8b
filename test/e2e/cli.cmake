# The karst command on traces: what it prints, and what it says when it cannot.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_executable(cli_traces cli_traces.cc)
target_link_libraries(cli_traces PRIVATE karst_write karst_reader)
karst_instrument(cli_traces)
foreach(part options calls sums compare terminal files)
  add_test(NAME cli.${part} COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/cli_${part}.py $<TARGET_FILE:karst>
                                    $<TARGET_FILE:cli_traces>)
  karst_add_labels(cli.${part})
endforeach()

add_executable(cli_text_test cli_names_test.cc cli_text_test.cc ${CMAKE_SOURCE_DIR}/cli/text/names.cc ${CMAKE_SOURCE_DIR}/cli/text/text.cc)
target_link_libraries(cli_text_test PRIVATE karst_base karst_format karst_export fmt::fmt GTest::gtest_main)
karst_instrument(cli_text_test)
karst_test_headers(cli_text_test)
gtest_discover_tests(cli_text_test DISCOVERY_TIMEOUT 60)
