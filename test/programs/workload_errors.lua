-- Errors and yields by the ten thousand: in Lua that was built as C++ each of them is an exception.
local thrown = 0
local function fails(f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok)
  thrown = thrown + 1
  return message
end

-- Through calls of Lua, which are one frame of the interpreter, and of C, which are several each.
local function deep(n) if n == 0 then error({code = 42}) end return (deep(n - 1)) end
local function through_c(n) if n == 0 then error("bottom", 0) end return (string.gsub("x", "x", function() through_c(n - 1) end)) end
for n = 1, 1500 do assert(fails(deep, n % 90).code == 42) end
for n = 1, 1500 do assert(fails(through_c, n % 25) == "bottom") end

-- Of the library, of operators, of metamethods, of the parser.
local angry = setmetatable({}, {__index = function(_, k) error(k, 0) end, __lt = function() error("less", 0) end})
local failures = {
  function() return angry.field end, function() return angry < angry end, function() return {} + 1 end,
  function() return nil .. "x" end, function() return ("x"):rep(-1):bad() end, function() string.rep("x", 1 << 60) end,
  function() table.sort({3, 1, 2}, function() error("order", 0) end) end, function() return 1 // 0 | 1.5 end,
  function() table.concat({{}}) end, function() assert(load("return return"))() end, function() assert(false, "plain") end,
  function() setmetatable(1, {}) end, function() for _ in 5 do end end, function() string.format("%d", "x") end,
}
for _ = 1, 300 do
  for i = 1, #failures do fails(failures[i]) end
end

-- Rethrown, handled by a handler that fails itself, and with variables to be closed on the way.
local closed = 0
local function closing(n)
  local guard <close> = setmetatable({}, {__close = function(_, e) closed = closed + 1 if n % 3 == 0 then error("again", 0) end assert(e) end})
  if n == 0 then error("start", 0) end
  closing(n - 1)
end
for n = 1, 300 do fails(closing, n % 12) end
assert(closed > 300)
local function rethrow(n) local ok, e = pcall(n == 0 and error or rethrow, n - 1) if not ok then error(e, 0) end end
for n = 1, 300 do fails(rethrow, n % 12) end
for _ = 1, 200 do assert(not xpcall(error, function() error("in the handler") end)) end

-- Yields out of the middle, and coroutines that end by an error.
local sum = 0
for round = 1, 60 do
  local numbers = coroutine.wrap(function()
    for i = 1, 40 do pcall(function() coroutine.yield(i) if i % 4 == 0 then error("inside") end end) end
    error("end", 0)
  end)
  for _ = 1, 40 do sum = sum + numbers() end
  assert(fails(numbers) == "end" or round)
end
assert(sum == 60 * 820)
local function endless(n) return 1 + endless(n + 1) end
for _ = 1, 3 do assert(fails(endless, 1):find("overflow")) end
assert(thrown > 7500)
print(thrown, closed)
