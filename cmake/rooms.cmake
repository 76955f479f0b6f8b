# A room is a directory of the house whose name begins each include line of it: #include "reader/model.h".
#
# karst_room(NAME [USES ROOM...]) adds the room NAME. Its sources find the headers of NAME, of the rooms behind USES, and
# of the rooms that those use: there is no other include directory, so an include against the arrows does not compile.
# To that end each room has a directory of its own, rooms/NAME in the build, with one link in it that is called NAME.
#
# rooms/arrows, which tests read, has a line for each room: its name, what it uses itself, all that it may include.
set(karst_rooms ${CMAKE_BINARY_DIR}/rooms)
file(WRITE ${karst_rooms}/arrows "")

function(karst_room name)
  cmake_parse_arguments(PARSE_ARGV 1 room "" "" "USES")
  file(MAKE_DIRECTORY ${karst_rooms}/${name})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${name} ${karst_rooms}/${name}/${name} SYMBOLIC)
  set(reach ${name})
  foreach(used ${room_USES})
    get_property(known GLOBAL PROPERTY karst_reach_${used})
    if(NOT known)
      message(FATAL_ERROR "The room ${name} uses ${used}, which is not a room above it in CMakeLists.txt.")
    endif()
    list(APPEND reach ${known})
  endforeach()
  list(REMOVE_DUPLICATES reach)
  set_property(GLOBAL PROPERTY karst_reach_${name} ${reach})
  list(JOIN room_USES " " uses)
  list(JOIN reach " " all)
  file(APPEND ${karst_rooms}/arrows "${name}:${uses}:${all}\n")

  if(NOT EXISTS ${CMAKE_SOURCE_DIR}/${name}/CMakeLists.txt)
    return()  # headers alone
  endif()
  add_subdirectory(${name})
  get_property(targets DIRECTORY ${name} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL "UTILITY")
      karst_may_include(${target} ${reach})
    endif()
    if(type STREQUAL "STATIC_LIBRARY" AND KARST_UNITY AND NOT name STREQUAL "runtime")
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 7)
      # What is in an anonymous namespace is in no source of its own then, as gcc sees it.
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
    endif()
  endforeach()
endfunction()

# karst_may_include(TARGET ROOM...): the headers of these rooms, and of no others.
function(karst_may_include target)
  foreach(room ${ARGN})
    target_include_directories(${target} PRIVATE ${karst_rooms}/${room})
  endforeach()
endfunction()
