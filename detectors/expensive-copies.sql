-- name: expensive-copies
-- sentence: Copies of objects, by copy constructors and assignments, that take much of the time.
--
-- A function X::X(X const&) or X::operator=(X const&). Copies that were inlined, and those of libc's memcpy, have no
-- call and are not seen.
-- 10 copies: fewer are set-up. 1 ms, and a tenth of the time in traced functions: else there is more to gain elsewhere.
-- Sure: the more often the surer.
WITH copies AS (
  SELECT function, calls, total_ns, total_share,
         regexp_extract(function, '^((?:.*::)?([^:()]+))::([^:()]+)\((.*) const&\)', ['type', 'last', 'name', 'from'])
           AS part
  FROM functions WHERE function LIKE '% const&)%'),
found AS (
  SELECT * FROM copies
  WHERE calls >= 10 AND total_ns >= 1000000 AND total_share >= 0.1 AND part.type = part."from"
    AND (part.name = regexp_replace(part.last, '<.*', '') OR part.name = 'operator='
         OR part.name = regexp_extract(regexp_replace(part.type, '<.*', ''), '[^:]+$'))),
callers AS (SELECT function, arg_max(caller, calls) AS caller FROM edges GROUP BY function),
longest AS (
  SELECT function, max(duration_ns) AS longest_ns, arg_max(call, duration_ns) AS call,
         arg_max(tid, duration_ns) AS tid, arg_max(thread, duration_ns) AS thread,
         arg_max(begin_ns, duration_ns) AS begin_ns
  FROM calls WHERE function IN (SELECT function FROM found) GROUP BY function)
SELECT format('{} is copied {} times, mostly in {}', f.part.type, f.calls, plain(caller))
         AS title,
       format('Its copies take {:.1f}% of the time in traced functions. Pass it by reference, or move it.',
              100 * total_share) AS sentence,
       begin_ns, longest_ns AS duration_ns, tid, thread, call, f.calls AS amount, 'copies' AS unit, f.total_ns,
       sure(f.calls, f.calls) AS sure
FROM found f JOIN longest USING (function) LEFT JOIN callers USING (function);
