# The viewer's page: its types, its unit tests, and the page in a browser against the karst of this build. Skipped where
# what builds it, or the browser, is not there.
# Not under sanitizers: the page is the same there, and the server has tests of its own.
if(KARST_SANITIZE)
  return()
endif()
foreach(part types unit core page)
  add_test(NAME viewer.${part}
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/viewer_test.sh ${part})
  set_tests_properties(viewer.${part} PROPERTIES
    LABELS "e2e;viewer"
    SKIP_RETURN_CODE 77
    TIMEOUT 600
    ENVIRONMENT "KARST_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};KARST_SOURCE_ROOT=${CMAKE_SOURCE_DIR};KARST_E2E_WORK=${CMAKE_CURRENT_BINARY_DIR}/work")
  karst_add_labels(viewer.${part})
endforeach()
# core: what people see first. page: all, 24 files one after the other: seven minutes, and more where two CPUs do
# something else as well; a test of counts builds LevelDB, which it looks at.
set_tests_properties(viewer.page PROPERTIES
  TIMEOUT 1500
  DEPENDS counts.test_leveldb_workload_counts_are_those_of_gcov_and_callgrind)
