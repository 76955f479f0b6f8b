# Packages by CPack: a relocatable .tar.gz and a .deb for Debian 12; script/package makes both.
set(CPACK_PACKAGE_NAME karst)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "function-call tracing profiler for C and C++")
set(CPACK_PACKAGE_DESCRIPTION "Records every call and every return of every thread of a program that was built with its compiler
wrappers, within one memory budget, and shows them: as reports, call trees, and timelines for
Perfetto and Chrome's trace viewer.")
# The project alone: whoever gives packages to others puts their NAME <ADDRESS> here.
set(CPACK_PACKAGE_CONTACT "Karst developers <karst@karst.invalid>" CACHE STRING "Maintainer of the packages: NAME <ADDRESS>")
set(CPACK_PACKAGE_VENDOR "Karst developers")
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_FILE_NAME karst-${PROJECT_VERSION}-linux-x86_64)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/before_packing.cmake)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The wrappers are of use with a compiler alone; traces can be read without.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "g++ | clang, binutils")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, pkg-config")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
file(WRITE ${CMAKE_BINARY_DIR}/deb/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/deb/triggers)
include(CPack)
