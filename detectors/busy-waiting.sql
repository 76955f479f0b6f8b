-- name: busy-waiting
-- sentence: A thread asks the same thing again and again, without pause, until another thread has done it.
-- needs: returns
--
-- A call that makes 1000 calls of one function and no others, with one argument and one result; only the last one has
-- another result. 1 ms: what is shorter costs less than to be woken. With what tracing took: the wait ends when the
-- other thread is done, however long asking takes.
-- Another thread made calls meanwhile: else nothing could come of waiting.
-- Blocked for less than half of the time, where states are known: else it was no busy wait.
-- An iterator that is asked whether it has more, in a loop that makes no other traced call, looks the same.
-- Sure: the share of the calls that come back with "not yet".
WITH asked AS (
  SELECT parent, function, count(*) AS times, sum(duration_ns) AS asked_ns, arg_max(returned, id) AS at_last,
         mode(returned) AS before
  FROM calls WHERE returned <> '' AND parent IS NOT NULL AND last = id
  GROUP BY parent, function HAVING count(*) >= 1000 AND count(DISTINCT returned) = 2
     AND count(DISTINCT arguments) <= 1),
waits AS (
  SELECT a.*, p.function AS waiter, p.begin_ns, p.end_ns - p.begin_ns AS duration_ns, p.pid, p.tid, p.thread, p.call
  FROM asked a JOIN calls p ON p.id = a.parent
  WHERE p.last - p.id = a.times AND p.end_ns - p.begin_ns >= 1000000
    AND 2 * coalesce(p.blocked_ns, 0) <= p.end_ns - p.begin_ns
    AND (SELECT count(*) FROM calls c WHERE c.parent = a.parent AND c.returned <> a.before) = 1
    AND EXISTS (SELECT 1 FROM calls o WHERE o.pid = p.pid AND o.tid <> p.tid AND o.begin_ns < p.end_ns
                AND o.end_ns > p.begin_ns)),
sums AS (
  SELECT *, count(*) OVER w AS cases, sum(duration_ns) OVER w AS total_ns,
         row_number() OVER (PARTITION BY waiter, function ORDER BY duration_ns DESC) AS place
  FROM waits WINDOW w AS (PARTITION BY waiter, function))
SELECT format('{} asks {} {} times until it returns {}', plain(waiter), plain(function), times, at_last) AS title,
       format('{} calls without pause, all but the last return {}, in {:.3f} ms. Such waits in all: {}. Wait for '
              || 'a condition variable, or for the value by std::atomic::wait.', times, before,
              duration_ns / 1e6, cases) AS sentence,
       begin_ns, duration_ns, tid, thread, call, times AS amount, 'calls' AS unit, total_ns,
       sure(times - 1, times) AS sure
FROM sums WHERE place = 1;
