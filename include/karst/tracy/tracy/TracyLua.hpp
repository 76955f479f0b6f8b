// SPDX-License-Identifier: MIT
// Tracy's functions for Lua: scripts that call them run, and say nothing. Include Lua's headers before this one.
#ifndef KARST_TRACY_LUA_HPP
#define KARST_TRACY_LUA_HPP

#include "Tracy.hpp"

namespace tracy {

KARST_NOTRACE inline int LuaNothing(lua_State* /*lua*/) { return 0; }
KARST_NOTRACE inline int LuaZero(lua_State* lua) {
  lua_pushinteger(lua, 0);
  return 1;
}

KARST_NOTRACE inline void LuaRegister(lua_State* lua) {
  lua_newtable(lua);
  constexpr const char* kNames[] = {"ZoneBegin", "ZoneBeginN", "ZoneBeginS", "ZoneBeginNS", "ZoneEnd",
                                    "ZoneText",  "ZoneName",   "Message",    "SectionLeave"};
  for (const char* name : kNames) {
    lua_pushcfunction(lua, LuaNothing);
    lua_setfield(lua, -2, name);
  }
  lua_pushcfunction(lua, LuaZero);
  lua_setfield(lua, -2, "SectionEnter");
  lua_setglobal(lua, "tracy");
}
KARST_NOTRACE inline void LuaRemove(char* /*script*/) {}
KARST_NOTRACE inline void LuaHook(lua_State* /*lua*/, lua_Debug* /*call*/) {}

}  // namespace tracy

#endif
