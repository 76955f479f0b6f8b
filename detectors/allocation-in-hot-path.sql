-- name: allocation-in-hot-path
-- sentence: A function that is called often takes memory and frees it at once, again and again.
-- needs: memory
--
-- 1000 allocations that were freed as the next thing, and half of what the function takes: what lives longer is needed.
-- One for each call, and 100 calls: else it is set-up.
-- 50 ns is what malloc() and free() take together, mostly. That must be 2 % of the function's own time.
-- A tenth of the time in traced functions: a path that is not hot may allocate.
-- Sure: the share of the function's allocations that were freed at once.
WITH found AS (
  SELECT m.function, m.allocations, m.short_lived, m.bytes, f.calls, f.total_share, 50 * m.short_lived AS cost_ns
  FROM memory_of_functions m JOIN functions f USING (function)
  WHERE m.short_lived >= 1000 AND 2 * m.short_lived >= m.allocations AND f.calls >= 100 AND m.allocations >= f.calls
    AND f.total_share >= 0.1 AND 50 * m.short_lived >= 0.02 * f.self_ns),
longest AS (
  SELECT function, max(duration_ns) AS longest_ns, arg_max(call, duration_ns) AS call,
         arg_max(tid, duration_ns) AS tid, arg_max(thread, duration_ns) AS thread,
         arg_max(begin_ns, duration_ns) AS begin_ns
  FROM calls WHERE function IN (SELECT function FROM found) GROUP BY function)
SELECT format('{} takes memory {} times and frees it at once', plain(function), short_lived) AS title,
       format('{:.1f} allocations a call, {:.0f} bytes each, on a path with {:.1f}% of the time. Keep a buffer, or use '
              || 'the stack.', allocations / calls, bytes / allocations, 100 * total_share) AS sentence,
       begin_ns, longest_ns AS duration_ns, tid, thread, call, short_lived AS amount, 'allocations' AS unit,
       cost_ns AS total_ns, sure(short_lived, allocations) AS sure
FROM found JOIN longest USING (function);
