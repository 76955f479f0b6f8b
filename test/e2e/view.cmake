# karst view and karst export --to html from the command line.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME view COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/view_test.py $<TARGET_FILE:karst>
                           $<TARGET_FILE:cli_traces>)
# Real runs: karst run --view, thread states.
e2e_methods(view view_runs)
e2e_methods(far_view far_view)
