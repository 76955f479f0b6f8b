# The commands of the tutorial and of each how-to page, as they stand there.
file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/tutorial.md ${CMAKE_SOURCE_DIR}/docs/how-to/*.md)
foreach(page ${pages})
  get_filename_component(name ${page} NAME_WE)
  add_test(NAME pages.${name} COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/test/docs/page_commands.py ${page}
    ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
  set_tests_properties(pages.${name} PROPERTIES LABELS "e2e;pages" TIMEOUT 300 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
  karst_add_labels(pages.${name})
endforeach()
