# What `cmake --install` puts where. The tree finds its own parts relative to itself (karst: ../lib/libkarst.so.0, the
# wrappers: ../lib/karst), so it may be moved, and it is lib/ on every system: no lib64, no multiarch directory.
set(CMAKE_INSTALL_LIBDIR lib)
set(CMAKE_INSTALL_INCLUDEDIR include)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS karst RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS karst-gcc RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# One statically linked program under all the wrappers' names, and one page.
foreach(wrapper karst-g++ karst-clang karst-clang++ karst-gfortran karst-gnatmake)
  install(CODE "
    foreach(link \"${CMAKE_INSTALL_BINDIR}/${wrapper}=karst-gcc\" \"${CMAKE_INSTALL_MANDIR}/man1/${wrapper}.1.gz=karst-gcc.1.gz\")
      string(REGEX MATCH \"^(.*)=(.*)$\" link \"\${link}\")
      get_filename_component(into \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/\${CMAKE_MATCH_1}\" DIRECTORY)
      file(MAKE_DIRECTORY \"\${into}\")
      message(STATUS \"Installing: \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/\${CMAKE_MATCH_1}\")
      file(CREATE_LINK \"\${CMAKE_MATCH_2}\" \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/\${CMAKE_MATCH_1}\" SYMBOLIC)
      list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${CMAKE_INSTALL_PREFIX}/\${CMAKE_MATCH_1}\")
    endforeach()")
endforeach()

get_property(companions DIRECTORY ${CMAKE_SOURCE_DIR}/interpose PROPERTY KARST_COMPANIONS)
install(TARGETS karst_runtime karst_reader_library ${companions} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libkarst.a DESTINATION ${CMAKE_INSTALL_LIBDIR})
# Specs, the objects that are linked into traced programs, karst-as.
install(DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/karst/ DESTINATION ${CMAKE_INSTALL_LIBDIR}/karst USE_SOURCE_PERMISSIONS)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/karst DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h"
                                                                                               PATTERN "*.hpp")

# find_package(Karst), the toolchain file, pkg-config.
get_target_property(KARST_SOVERSION karst_runtime SOVERSION)
set(karst_package ${CMAKE_BINARY_DIR}/package)
configure_package_config_file(${CMAKE_SOURCE_DIR}/packaging/KarstConfig.cmake.in ${karst_package}/KarstConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Karst NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${karst_package}/KarstConfigVersion.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
configure_file(${CMAKE_SOURCE_DIR}/packaging/karst.pc.in ${karst_package}/karst.pc @ONLY)
install(FILES ${karst_package}/KarstConfig.cmake ${karst_package}/KarstConfigVersion.cmake
              ${CMAKE_SOURCE_DIR}/packaging/KarstToolchain.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Karst)
install(FILES ${karst_package}/karst.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Man pages and completions are made of what karst itself says of its options.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(karst_described ${CMAKE_BINARY_DIR}/described)
add_custom_command(OUTPUT ${karst_described}/stamp
  COMMAND ${CMAKE_COMMAND} -E make_directory ${karst_described}
  COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/packaging/describe.py $<TARGET_FILE:karst> ${PROJECT_VERSION}
          ${karst_described} ${CMAKE_SOURCE_DIR}/packaging/karst-gcc.1
  COMMAND ${CMAKE_COMMAND} -E touch ${karst_described}/stamp
  DEPENDS karst ${CMAKE_SOURCE_DIR}/packaging/describe.py ${CMAKE_SOURCE_DIR}/packaging/karst-gcc.1 VERBATIM)
add_custom_target(karst_described ALL DEPENDS ${karst_described}/stamp)
install(DIRECTORY ${karst_described}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1.gz")
install(FILES ${karst_described}/bash/karst DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${karst_described}/zsh/_karst DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
# The page that opens traces by itself.
if(TARGET karst_page_engine)
  install(FILES ${CMAKE_BINARY_DIR}/page/export.html DESTINATION ${CMAKE_INSTALL_DATADIR}/karst RENAME karst.html)
endif()
# What `karst check` asks. The build tree has the same place.
install(DIRECTORY detectors DESTINATION ${CMAKE_INSTALL_DATADIR}/karst FILES_MATCHING PATTERN "*.sql")
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share/karst)
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/detectors ${CMAKE_BINARY_DIR}/share/karst/detectors SYMBOLIC)
install(FILES packaging/karst-gdb.py DESTINATION ${CMAKE_INSTALL_DATADIR}/karst)
# For Python: its directory goes into PYTHONPATH, or beside a program.
install(DIRECTORY python/karst DESTINATION ${CMAKE_INSTALL_DATADIR}/karst/python FILES_MATCHING PATTERN "*.py"
                                                                                                PATTERN "py.typed")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
