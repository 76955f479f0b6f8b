-- name: serial-pool
-- sentence: Threads of a pool run one at a time, as they wait for each other's locks.
-- needs: locks
--
-- A pool: 3 threads and more of one function, which takes nine tenths of the life of each.
-- Serial: of the time that they are there together, waits for locks taken off, fewer than 1.5 threads are left at a
-- time. Threads that wait for work count as if they ran, so that a pool with little to do is not taken for one.
-- 5 ms: a shorter life is mostly start and end.
-- Sure: the share of the waits in which a thread of the pool had the lock.
WITH lives AS (SELECT pid, tid, min(begin_ns) AS begin_ns, max(end_ns) AS end_ns FROM calls GROUP BY pid, tid),
members AS (  -- each thread's innermost call that takes its life
  SELECT c.pid, c.tid, c.thread, c.function, c.call, c.begin_ns, c.end_ns, c.duration_ns,
         row_number() OVER (PARTITION BY c.pid, c.tid ORDER BY c.depth DESC) AS place
  FROM calls c JOIN lives l USING (pid, tid) WHERE c.duration_ns >= 0.9 * (l.end_ns - l.begin_ns)),
pools AS (
  SELECT pid, function, list(tid) AS tids, count(*) AS threads, min(begin_ns) AS begin_ns,
         max(end_ns) - min(begin_ns) AS span_ns, sum(duration_ns) AS life_ns, arg_max(tid, duration_ns) AS tid,
         arg_max(thread, duration_ns) AS thread, arg_max(call, duration_ns) AS call
  FROM members WHERE place = 1 GROUP BY pid, function HAVING count(*) >= 3),
waited AS (
  SELECT p.pid, p.function, count(*) AS waits, sum(w.duration_ns) AS waited_ns,
         count_if(list_contains(p.tids, w.holder_tid)) AS own
  FROM pools p JOIN lock_waits w ON w.pid = p.pid AND list_contains(p.tids, w.tid)
  WHERE w.kind IN ('mutex', 'rwlock', 'rwlock (shared)', 'spinlock') GROUP BY p.pid, p.function)
SELECT format('{} threads of {} run one at a time', threads, plain(function)) AS title,
       format('{:.1f} of them run at a time, on the average of {:.3f} ms; the others wait for locks. More threads will '
              || 'not make it faster: split what the locks guard.', (life_ns - waited_ns) / span_ns, span_ns / 1e6)
         AS sentence,
       begin_ns, span_ns AS duration_ns, tid, thread, call, threads AS amount, 'threads' AS unit,
       waited_ns AS total_ns, sure(own, waits) AS sure
FROM pools JOIN waited USING (pid, function)
WHERE span_ns >= 5000000 AND life_ns >= 2 * span_ns AND life_ns - waited_ns <= 1.5 * span_ns;
