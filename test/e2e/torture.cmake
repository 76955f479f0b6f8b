# Torture, faults, exact counts and the behaviour of `karst run`: every test method is a test of its own, so that one
# which needs privileges or a tool that is not there is shown as skipped, with its reason.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# e2e_methods(LABEL SCRIPT...)
function(e2e_methods label)
  foreach(script ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${script}.py)
    file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/${script}.py methods REGEX "^    def test_")
    foreach(line ${methods})
      string(REGEX REPLACE "^    def (test_[A-Za-z0-9_]*).*" "\\1" method "${line}")
      add_test(NAME ${script}.${method}
        COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/${script}.py ${method})
      set_tests_properties(${script}.${method} PROPERTIES
        LABELS "e2e;${label}"
        SKIP_RETURN_CODE 77
        TIMEOUT 300
        ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1;KARST_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};KARST_SOURCE_ROOT=${CMAKE_SOURCE_DIR};KARST_E2E_WORK=${CMAKE_CURRENT_BINARY_DIR}/work")
    endforeach()
  endforeach()
endfunction()

e2e_methods(torture torture_threads torture_signals torture_steps torture_forks torture_hosts)
e2e_methods(faults faults)
e2e_methods(counts counts)
e2e_methods(run run)
