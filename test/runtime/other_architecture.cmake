# Checks the runtime's sources, but those of arch/x86_64/, with a compiler for ARM64: some seconds.
#   cmake -D ROOT=... -P other_architecture.cmake
find_program(compiler aarch64-linux-gnu-g++)
if(NOT compiler)
  message("there is no aarch64-linux-gnu-g++")
  return()
endif()
file(GLOB sources ${ROOT}/runtime/core/*.cc ${ROOT}/runtime/hooks/*.cc)
foreach(source ${sources})
  execute_process(COMMAND ${compiler} -std=c++20 -fsyntax-only -fno-exceptions -fno-rtti -ffreestanding -fno-builtin
                          -mgeneral-regs-only -Wall -Wextra -Wshadow -Werror -I${ROOT} ${source} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(SEND_ERROR "${source}: what is of x86 alone belongs in arch/x86_64/")
  endif()
endforeach()
