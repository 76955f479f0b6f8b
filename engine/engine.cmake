# The engine of a page without a server: reader and view, compiled for WebAssembly by Debian's clang.
find_program(KARST_WASM_CLANG clang++-14)
find_program(KARST_WASM_LINKER wasm-ld-14)
find_file(KARST_WASM_LIBC wasm32-wasi/libc.a PATHS /usr/lib NO_DEFAULT_PATH)
find_file(KARST_WASM_LIBCXX wasm32-wasi/libc++.a PATHS /usr/lib NO_DEFAULT_PATH)
find_file(KARST_WASM_LIBCXXABI wasm32-wasi/libc++abi.a PATHS /usr/lib NO_DEFAULT_PATH)
find_file(KARST_WASM_BUILTINS libclang_rt.builtins-wasm32.a PATHS /usr/lib/llvm-14/lib/clang PATH_SUFFIXES 14.0.6/lib/wasi NO_DEFAULT_PATH)
set(wasm_packages "")
foreach(need KARST_WASM_CLANG=clang-14 KARST_WASM_LINKER=lld-14 KARST_WASM_LIBC=wasi-libc KARST_WASM_LIBCXX=libc++-14-dev-wasm32
        KARST_WASM_LIBCXXABI=libc++abi-14-dev-wasm32 KARST_WASM_BUILTINS=libclang-rt-14-dev-wasm32)
  string(REGEX MATCH "^(.*)=(.*)$" need ${need})
  if(NOT ${CMAKE_MATCH_1})
    string(APPEND wasm_packages " ${CMAKE_MATCH_2}")
  endif()
endforeach()
if(wasm_packages)
  message(FATAL_ERROR "The viewer's page needs these packages for its engine (WebAssembly):${wasm_packages}. script/setup installs them.")
endif()
# One thread, no files, no exceptions: page/engine/library has what the sources use of a library that is not there.
# fmt is Debian's, used as headers alone.
set(engine_dir ${CMAKE_BINARY_DIR}/page-engine)
file(MAKE_DIRECTORY ${engine_dir}/include)
file(CREATE_LINK /usr/include/fmt ${engine_dir}/include/fmt SYMBOLIC)
set(engine_flags --target=wasm32-wasi -std=c++20 -O2 -fignore-exceptions -fno-rtti -Wall -Wextra -Wshadow -Werror
  -isystem ${CMAKE_SOURCE_DIR}/page/engine/library -isystem ${engine_dir}/include -I${CMAKE_SOURCE_DIR}
  -DFMT_HEADER_ONLY -DFMT_STATIC_THOUSANDS_SEPARATOR=44 -DKARST_VERSION="${PROJECT_VERSION}")
add_executable(karst_syscall_table ${CMAKE_SOURCE_DIR}/page/engine/syscall_table.cc)
target_link_libraries(karst_syscall_table PRIVATE karst_analysis)
add_custom_command(OUTPUT ${engine_dir}/syscall_names.cc
  COMMAND karst_syscall_table > ${engine_dir}/syscall_names.cc
  COMMENT "Writing the page's table of system calls")
# By room, each compiled several files at a time: most of the time are the headers.
set(engine_sources
  analysis/call_groups analysis/diff analysis/diff_calls analysis/diff_counts analysis/diff_findings
  analysis/diff_names analysis/errno_names analysis/explain analysis/flows analysis/frames analysis/function_list
  analysis/holds analysis/left_calls analysis/lock_orders analysis/lock_rings analysis/lock_rows analysis/locks
  analysis/log_text
  analysis/memory analysis/notes analysis/outliers analysis/parts analysis/pictures analysis/program_facts
  analysis/report analysis/requests analysis/samples analysis/selection analysis/tracing_cost analysis/value_hints analysis/values
  analysis/kept_off analysis/wait_stacks analysis/waits analysis/usage
  answers/changes answers/explanation answers/locks answers/problems answers/relation answers/requests answers/slow answers/states
  answers/waits
  base/json base/plain_name base/text base/utf8
  columns/duration_counts columns/edges columns/flame columns/selection columns/table
  words/explanation words/findings words/wait_words words/waits
  reader/calls reader/chunks reader/clock_problems reader/cuts reader/event_stream reader/fiber_runs reader/fibers
  reader/held_times
  reader/lost_times reader/model_builder reader/model_records reader/moments reader/pieces reader/sample_chunks reader/state_chunks
  reader/state_walk reader/states reader/stored_block reader/switches reader/thread_states reader/trace
  reader/tracing_times reader/unpack reader/usage_chunks
  choice/function_filter
  page/engine/engine page/engine/file_bytes page/engine/throw)
# Of the engine all but what writes files.
get_target_property(sources_of_karst karst_engine SOURCES)
list(FILTER sources_of_karst INCLUDE REGEX "^(api|index|tiles)/")
list(REMOVE_ITEM sources_of_karst index/index_cache.cc)
list(TRANSFORM sources_of_karst REPLACE "(.*)\\.cc" "engine/\\1")
list(APPEND engine_sources ${sources_of_karst})
set(engine_units "")
set(unit_room "")
set(unit_size 0)
foreach(source IN LISTS engine_sources)
  get_filename_component(room ${source} DIRECTORY)
  if(NOT room STREQUAL unit_room OR unit_size EQUAL 7)
    list(LENGTH engine_units number)
    set(unit ${engine_dir}/unit-${number}.cc)
    list(APPEND engine_units ${unit})
    set(unit_text_${number} "")
    set(unit_room ${room})
    set(unit_size 0)
  endif()
  string(APPEND unit_text_${number} "#include \"${source}.cc\"\n")
  math(EXPR unit_size "${unit_size} + 1")
endforeach()
set(number 0)
foreach(unit IN LISTS engine_units)
  file(CONFIGURE OUTPUT ${unit} CONTENT "${unit_text_${number}}" @ONLY)
  math(EXPR number "${number} + 1")
endforeach()
set(engine_objects "")
foreach(from IN LISTS engine_units ITEMS ${engine_dir}/syscall_names.cc)
  string(REGEX REPLACE "cc$" "o" object ${from})
  file(RELATIVE_PATH name ${engine_dir} ${from})
  add_custom_command(OUTPUT ${object}
    COMMAND ${KARST_WASM_CLANG} ${engine_flags} -MD -MF ${object}.d -MT ${object} -c ${from} -o ${object}
    DEPENDS ${from} DEPFILE ${object}.d VERBATIM
    COMMENT "Compiling ${name} for the page")
  list(APPEND engine_objects ${object})
endforeach()
set(engine_file ${CMAKE_BINARY_DIR}/page-engine.wasm)
add_custom_command(OUTPUT ${engine_file}
  COMMAND ${KARST_WASM_CLANG} --target=wasm32-wasi -mexec-model=reactor -Wl,--strip-all -Wl,--max-memory=4294967296
          ${engine_objects} -o ${engine_file}
  DEPENDS ${engine_objects}
  COMMENT "Linking the page's engine")
add_custom_target(karst_page_engine DEPENDS ${engine_file})
