# karst_instrument(target): sanitizers for one target when KARST_SANITIZE or KARST_FUZZ is on. Never for the runtime,
# which lives in other people's processes.
function(karst_instrument target)
  if(KARST_SANITIZE OR KARST_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=address,undefined)
  endif()
  if(KARST_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()
