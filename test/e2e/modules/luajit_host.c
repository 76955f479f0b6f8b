/* A traced program with a compiler inside: LuaJIT, whose machine code has no hooks and calls traced functions.
 *   luajit_host SCRIPT N    runs the script with the global n = N; prints what it returns */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>

#define STEADY __attribute__((noipa))

/* The script finds these in the program by their names. */
STEADY double leaf(double x) { return x + 1; }
STEADY double twice(double x) { return leaf(x) + leaf(x + 1); }
STEADY double through(double (*back)(double), double x) { return leaf(back(x)); }

/* An error of LuaJIT's is an exception to the unwinder, and jumps over these two. */
STEADY static int refuse(lua_State* lua) { return luaL_error(lua, "refused %d", (int)leaf(1)); }
STEADY static int asks(lua_State* lua) { return refuse(lua) + 1; }

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  lua_State* lua = luaL_newstate();
  luaL_openlibs(lua);
  lua_register(lua, "asks", asks);
  lua_pushinteger(lua, atoi(argv[2]));
  lua_setglobal(lua, "n");
  if (luaL_loadfile(lua, argv[1]) != 0 || lua_pcall(lua, 0, 1, 0) != 0) {
    fprintf(stderr, "%s\n", lua_tostring(lua, -1));
    return 1;
  }
  printf("%s\n", lua_tostring(lua, -1));
  lua_close(lua);
  return 0;
}
