# What is of x86 stands in arch/. Looks for its words in all C, C++ and assembly.
#   cmake -D ROOT=... -P x86_alone.cmake
set(words "rdtsc|__x86_64__|x86intrin|[a-z]mmintrin|__builtin_ia32_|_mm_[a-z]")
set(allowed
  include/karst/karst.h           # public, stands alone
  bench/fixtures/cheapest_hook.S  # what is measured beside ours
  bench/fixtures/floor.c          # the floor itself, beside which other tracers' programs are compiled
  test/e2e/watch/requests.cc      # traced: it must not call what is instrumented with it
  test/e2e/wrapper/vectors.c)     # about vector registers

file(GLOB rooms LIST_DIRECTORIES true RELATIVE ${ROOT} ${ROOT}/*)
list(FILTER rooms EXCLUDE REGEX "^(arch|build.*|docs)$")
set(searched 0)
foreach(room ${rooms})
  if(room STREQUAL "viewer")
    set(from ${ROOT}/page/engine)  # the rest is TypeScript, with packages beside it
  else()
    set(from ${ROOT}/${room})
  endif()
  file(GLOB_RECURSE sources RELATIVE ${ROOT} ${from}/*.cc ${from}/*.h ${from}/*.hpp ${from}/*.c ${from}/*.S)
  foreach(source ${sources})
    math(EXPR searched "${searched} + 1")
    file(STRINGS ${ROOT}/${source} found REGEX "${words}")
    list(FIND allowed ${source} place)
    if(found AND place EQUAL -1)
      message(SEND_ERROR "${source}: ${found}\nwhat is of x86 belongs in arch/, where arch/cpu.h offers it to all")
    elseif(NOT found AND NOT place EQUAL -1)
      message(SEND_ERROR "${source} has nothing of x86 any more: take it off the list")
    endif()
  endforeach()
endforeach()
if(searched LESS 300)
  message(FATAL_ERROR "only ${searched} sources were found")
endif()
