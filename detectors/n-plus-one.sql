-- name: n-plus-one
-- sentence: A call makes many equal calls, and each of them asks a file or a socket by itself.
-- needs: files
--
-- 20 calls of one function below one call: fewer are seldom worth a change.
-- 5 us each, 1 ms together: what is shorter was answered from memory, and nobody waits for it.
-- Half of the caller's time: else there is more to gain elsewhere in it.
-- Four in five are of one shape, which is the number of calls below: a loop over different things is no such query.
-- The caller has a caller, and takes less than four fifths of its thread's life: else it is the loop of a server, or of
-- a worker.
-- Sure: the share of these calls that are of that shape and asked.
WITH lives AS (SELECT pid, tid, max(end_ns) - min(begin_ns) AS life_ns FROM calls GROUP BY pid, tid),
loops AS (
  SELECT c.parent, c.function, count(*) AS times, sum(c.duration_ns) AS loop_ns, mode(c.last - c.id) AS shape
  FROM calls c WHERE c.parent IS NOT NULL AND c.last > c.id
  GROUP BY c.parent, c.function HAVING count(*) >= 20 AND sum(c.duration_ns) >= greatest(1000000, 5000 * count(*))),
asking AS (  -- calls of libc that come back with an answer
  SELECT z.id FROM file_calls f
  JOIN calls z ON z.pid = f.pid AND z.tid = f.tid AND z.begin_ns = f.begin_ns AND z.function = f.call
  WHERE f.read > 0 OR f.call IN ('open', 'openat', 'fopen', 'stat', 'connect')),
asked AS (
  SELECT l.parent, l.function, count(DISTINCT c.id) AS alike
  FROM loops l JOIN calls c ON c.parent = l.parent AND c.function = l.function AND c.last - c.id = l.shape
  JOIN asking a ON a.id > c.id AND a.id <= c.last GROUP BY l.parent, l.function),
found AS (
  SELECT p.function AS caller, l.function, l.times, l.loop_ns, alike, p.begin_ns, p.duration_ns, p.tid, p.thread, p.call
  FROM loops l JOIN asked USING (parent, function) JOIN calls p ON p.id = l.parent JOIN lives USING (pid, tid)
  WHERE p.depth > 0 AND alike >= 0.8 * l.times AND 2 * l.loop_ns >= p.duration_ns
    AND p.duration_ns < 0.8 * lives.life_ns)
SELECT format('{} calls {} {} times, and each asks a file or a socket', plain(caller), plain(function), times) AS title,
       format('{} of the {} calls have one shape. They take {}% of the call. Such calls of {} in all: {}. '
              || 'Ask once for all of them.', alike, times, round(100 * loop_ns / duration_ns)::INT,
              plain(caller), cases) AS sentence,
       begin_ns, duration_ns, tid, thread, call, times AS amount, 'calls' AS unit, total_ns, sure(alike, times) AS sure
FROM (SELECT *, count(*) OVER w AS cases, sum(loop_ns) OVER w AS total_ns,
             row_number() OVER (PARTITION BY caller, function ORDER BY loop_ns DESC) AS place
      FROM found WINDOW w AS (PARTITION BY caller, function))
WHERE place = 1;
