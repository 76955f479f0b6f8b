-- name: long-tail-by-argument
-- sentence: The slow calls of a function share an argument that its other calls do not have.
-- needs: arguments
--
-- Slow: five times as long as half of the function's calls, and 100 us: below that a lost CPU looks the same.
-- 50 calls, of which 5 are slow: fewer share a value by chance.
-- A value that four in five of the slow calls have, and one in ten of the others.
-- Sure: the share of the slow calls that have it.
WITH noted AS (
  SELECT id, call, function, tid, thread, begin_ns, duration_ns, arguments FROM calls
  WHERE arguments <> '' AND open = '' AND function NOT IN (SELECT function FROM functions WHERE module = '[notes]')),
usual AS (SELECT function, count(*) AS calls, median(duration_ns) AS p50 FROM noted GROUP BY function
          HAVING count(*) >= 50),
judged AS (SELECT n.*, u.p50, n.duration_ns > greatest(5 * u.p50, 100000) AS slow FROM noted n JOIN usual u USING
           (function)),
sums AS (SELECT function, count_if(slow) AS slow, count_if(NOT slow) AS others, any_value(p50) AS p50 FROM judged
         GROUP BY function HAVING count_if(slow) >= 5),
given AS (SELECT id, unnest(list_distinct(string_split(arguments, ', '))) AS value FROM judged
          WHERE function IN (SELECT function FROM sums)),
shared AS (
  SELECT j.function, g.value, count_if(j.slow) AS slow_with, count_if(NOT j.slow) AS others_with,
         sum(j.duration_ns) FILTER (j.slow) AS total_ns, arg_max(j.call, j.duration_ns) AS call,
         arg_max(j.tid, j.duration_ns) AS tid, arg_max(j.thread, j.duration_ns) AS thread,
         arg_max(j.begin_ns, j.duration_ns) AS begin_ns, max(j.duration_ns) AS longest_ns
  FROM given g JOIN judged j USING (id) GROUP BY j.function, g.value),
best AS (
  SELECT *, row_number() OVER (PARTITION BY function ORDER BY slow_with DESC, others_with) AS place
  FROM shared JOIN sums USING (function) WHERE slow_with >= 0.8 * slow AND others_with <= 0.1 * others)
SELECT format('{} is slow with {}', plain(function), value) AS title,
       format('{} of its {} slow calls have this argument, and {} of {} others. They take {:.3f} ms on the average, '
              || 'half of its calls up to {:.1f} us.', slow_with, slow, others_with, others,
              total_ns / slow_with / 1e6, p50 / 1e3) AS sentence,
       begin_ns, longest_ns AS duration_ns, tid, thread, call, slow_with AS amount, 'slow calls' AS unit, total_ns,
       sure(slow_with, slow) AS sure
FROM best WHERE place = 1;
