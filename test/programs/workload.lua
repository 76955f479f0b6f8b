-- A little of everything: calls, closures, tables, strings, patterns, coroutines, errors (longjmp), garbage.
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
assert(fib(18) == 2584)

local words = {}
for w in ("the quick brown fox jumps over the lazy dog"):gmatch("%a+") do words[#words + 1] = w:upper():lower() end
table.sort(words, function(a, b) return a > b end)
assert(table.concat(words, ","):find("quick"))

local object = setmetatable({}, {__index = function(_, k) return k .. "!" end, __gc = function() end})
for i = 1, 200 do assert(object["k" .. i] == "k" .. i .. "!") end

local numbers = coroutine.wrap(function() for i = 1, 500 do coroutine.yield(i) end error("end of numbers") end)
local sum = 0
for _ = 1, 500 do sum = sum + numbers() end
assert(sum == 125250 and not pcall(numbers))

local function deep(n) if n == 0 then error({code = 42}) end deep(n - 1) return 0 end
for n = 1, 100 do
  local ok, e = pcall(deep, n)
  assert(not ok and e.code == 42)
  assert(select(2, xpcall(deep, function(m) return m.code end, n)) == 42)
end

local source = "local t = {} for i = 1, 50 do t[i] = i * 2 // 3 ~ i end return #t"
for _ = 1, 50 do assert(load(source)() == 50) end
for _ = 1, 2000 do local t = {1, 2, 3, {4}} t[5] = tostring(t[4][1]) end
collectgarbage()
for i = 1, 300 do assert(string.format("%5.2f|%-8s|%x", i / 7, "s" .. i, i):len() > 10) end
print(os.date("%Y", 0), math.maxinteger, utf8.char(228, 8364), string.pack("<i4", 77):byte())
