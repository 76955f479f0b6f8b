# Run by CPack before it packs. What karst loads, but for glibc, is put beside it in the .tar.gz, which may be unpacked on
# a machine that has none of it. The .deb names Debian's packages instead, and gets what Debian asks of each.
set(tree "${CPACK_TEMPORARY_INSTALL_DIRECTORY}")
if(CPACK_GENERATOR STREQUAL "DEB")
  string(APPEND tree "/usr")
endif()
foreach(program karst-as karst-tail-calls)  # CPack strips targets alone
  execute_process(COMMAND strip "${tree}/lib/karst/${program}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()

if(CPACK_GENERATOR STREQUAL "DEB")
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  set(changes "${tree}/share/doc/karst/changelog")
  file(WRITE "${changes}" "karst (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n"
    "  * What changed is in CHANGELOG.md.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  execute_process(COMMAND gzip -9nf "${changes}" COMMAND_ERROR_IS_FATAL ANY)
  # The wrappers run where compilers do, whose libraries need not be Karst's.
  file(WRITE "${tree}/share/lintian/overrides/karst"
    "karst: statically-linked-binary [usr/bin/karst-gcc]\n"
    "karst: statically-linked-binary [usr/lib/karst/karst-as]\n"
    "karst: embedded-library zlib [usr/bin/karst-gcc]\n")
  return()
endif()

find_program(patchelf patchelf REQUIRED)
set(programs "${tree}/bin/karst" "${tree}/lib/karst/karst-tail-calls")
file(GLOB libraries "${tree}/lib/libkarst-reader.so.*.*")
file(GET_RUNTIME_DEPENDENCIES
  EXECUTABLES ${programs}
  LIBRARIES ${libraries}
  RESOLVED_DEPENDENCIES_VAR found
  UNRESOLVED_DEPENDENCIES_VAR missing
  POST_EXCLUDE_REGEXES "/ld-linux[^/]*$" "/lib(c|m|dl|rt|pthread|resolv|util)\\.so\\.[0-9]+$")
if(missing)
  message(FATAL_ERROR "these libraries of karst are not here: ${missing}")
endif()
set(packages "")
foreach(library ${found})
  get_filename_component(name "${library}" NAME)
  get_filename_component(file "${library}" REALPATH)
  file(COPY "${file}" DESTINATION "${tree}/lib/karst/needed")
  get_filename_component(real "${file}" NAME)
  if(NOT real STREQUAL name)
    file(RENAME "${tree}/lib/karst/needed/${real}" "${tree}/lib/karst/needed/${name}")
  endif()
  get_filename_component(directory "${file}" DIRECTORY)
  get_filename_component(directory "${directory}" NAME)
  execute_process(COMMAND dpkg-query -S "*/${directory}/${real}" OUTPUT_VARIABLE owner ERROR_QUIET)
  if(owner MATCHES "^([^:, ]+)")
    list(APPEND packages "${CMAKE_MATCH_1}")
  endif()
endforeach()
# Who made them, and under which terms.
list(REMOVE_DUPLICATES packages)
foreach(package ${packages})
  if(EXISTS "/usr/share/doc/${package}/copyright")
    file(COPY "/usr/share/doc/${package}/copyright" DESTINATION "${tree}/lib/karst/needed/copyright/${package}")
  endif()
endforeach()
# DT_RPATH, as these libraries load each other.
foreach(program ${programs} ${libraries})
  get_filename_component(directory "${program}" DIRECTORY)
  file(RELATIVE_PATH needed "${directory}" "${tree}/lib/karst/needed")
  execute_process(COMMAND "${patchelf}" --force-rpath --set-rpath "\$ORIGIN/${needed}" "${program}"
    COMMAND_ERROR_IS_FATAL ANY)
endforeach()
