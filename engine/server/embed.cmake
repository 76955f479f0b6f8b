# Writes an assembler file that holds the files of a directory: cmake -DDIR=... -DOUT=... -P embed.cmake
# A table of path, begin and end for engine/server/page.cc. The directory may be missing or empty.
set(files "")
if(EXISTS ${DIR}/index.html)
  file(GLOB_RECURSE files RELATIVE ${DIR} ${DIR}/*)
  list(SORT files)
endif()
set(data "")
set(table "")
set(count 0)
foreach(path IN LISTS files)
  # Paths are Vite's; anything that an assembler's string would read otherwise is not one.
  if(NOT path MATCHES "^[A-Za-z0-9._/-]+$")
    message(FATAL_ERROR "${DIR}/${path}: not a name that can be embedded")
  endif()
  string(APPEND data ".Lpath${count}: .asciz \"${path}\"\n.balign 16\n.Lbegin${count}: .incbin \"${DIR}/${path}\"\n.Lend${count}: .byte 0\n")
  string(APPEND table ".quad .Lpath${count}, .Lbegin${count}, .Lend${count}\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUT} ".section .rodata.karst_page,\"a\"\n${data}
.section .data.rel.ro.karst_page,\"aw\"
.balign 8
.globl karst_page_files
.globl karst_page_file_count
karst_page_files:
${table}.quad 0
karst_page_file_count: .quad ${count}
.section .note.GNU-stack,\"\",@progbits
")
