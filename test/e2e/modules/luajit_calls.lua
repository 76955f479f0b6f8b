-- Machine code that calls traced functions, is called back by one, and is left by errors through two.
local ffi = require "ffi"
ffi.cdef [[
  double twice(double);
  double leaf(double);
  double through(double (*)(double), double);
]]
local C = ffi.C
local sum, failed = 0, 0
for i = 1, n do sum = sum + C.twice(i) end
local compiled = require "jit.util".traceinfo(1) ~= nil
for _ = 1, n do
  if not pcall(asks) then failed = failed + 1 end
end
local back = ffi.cast("double (*)(double)", function(x) return C.leaf(x) end)
jit.off()
for i = 1, n do sum = sum + C.through(back, i) end
return string.format("%d %d %s", sum, failed, compiled and "compiled" or "interpreted")
