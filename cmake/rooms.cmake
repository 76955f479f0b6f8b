# A room is a directory of the house whose name begins each include line of it: #include "reader/model.h".
#
# karst_room(NAME [USES ROOM...]) adds the room NAME. Its sources find the headers of NAME, of the rooms behind USES, and
# of the rooms that those use: there is no other include directory, so an include against the arrows does not compile.
# To that end each room has a directory of its own in rooms/ of the build, with one link in it that is called NAME.
#
# A floor is a room inside of another one (runtime/clock). Targets are the outer room's, and its CMakeLists.txt calls
# karst_floors(SOURCE...) for their sources: each finds what its own floor may include. The outer room itself stands on
# top of its floors.
#
# rooms/arrows, which tests read, has a line for each room: its name, what it uses itself, all that it may include.
set(karst_rooms ${CMAKE_BINARY_DIR}/rooms)
file(WRITE ${karst_rooms}/arrows "")

function(karst_room name)
  cmake_parse_arguments(PARSE_ARGV 1 room "" "" "USES")
  karst_room_directory(directory ${name})
  cmake_path(GET name PARENT_PATH outer)
  file(MAKE_DIRECTORY ${directory}/${outer})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${name} ${directory}/${name} SYMBOLIC)
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
  if(outer)
    set_property(GLOBAL PROPERTY karst_has_floors_${outer} ON)
  endif()

  if(NOT EXISTS ${CMAKE_SOURCE_DIR}/${name}/CMakeLists.txt)
    return()  # headers alone, or a floor
  endif()
  add_subdirectory(${name})
  get_property(has_floors GLOBAL PROPERTY karst_has_floors_${name})
  get_property(targets DIRECTORY ${name} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL "UTILITY" AND NOT has_floors)
      karst_may_include(${target} ${reach})
    endif()
    if(type STREQUAL "STATIC_LIBRARY" AND KARST_UNITY AND NOT has_floors)
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 7)
      # What is in an anonymous namespace is in no source of its own then, as gcc sees it.
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
    endif()
  endforeach()
endfunction()

# karst_room_directory(VARIABLE ROOM): the include directory that has this room's headers alone.
function(karst_room_directory variable room)
  string(REPLACE "/" "-" flat ${room})
  set(${variable} ${karst_rooms}/${flat} PARENT_SCOPE)
endfunction()

# karst_may_include(TARGET ROOM...): the headers of these rooms, and of no others.
function(karst_may_include target)
  foreach(room ${ARGN})
    karst_room_directory(directory ${room})
    target_include_directories(${target} PRIVATE ${directory})
  endforeach()
endfunction()

# karst_floors(SOURCE...): each may include what its floor may, by the directory that its relative path names. One of
# another room (arch/) may include what the outer room may.
function(karst_floors)
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE outer)
  foreach(source ${ARGN})
    cmake_path(GET source PARENT_PATH floor)
    if(IS_ABSOLUTE ${source})
      set(room ${outer})
    else()
      set(room ${outer}/${floor})
    endif()
    get_property(reach GLOBAL PROPERTY karst_reach_${room})
    if(NOT reach)
      message(FATAL_ERROR "${source} lies in ${room}, which is no room in CMakeLists.txt.")
    endif()
    foreach(other ${reach})
      karst_room_directory(directory ${other})
      set_property(SOURCE ${source} APPEND PROPERTY INCLUDE_DIRECTORIES ${directory})
    endforeach()
  endforeach()
endfunction()
