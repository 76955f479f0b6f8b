-- name: lock-contention
-- sentence: Threads wait for a lock that another thread has.
-- needs: locks
--
-- 10 waits: fewer are chance. 1 ms, and 5 % of the time of the trace: what is shorter nobody notices.
-- Conditions, semaphores and barriers are left out: a thread that waits for work is no trouble.
-- Sure: the share of the waits of which it is known which thread had the lock.
WITH span AS (SELECT max(end_ns) - min(begin_ns) AS ns FROM calls),
waits AS (
  SELECT *, coalesce(nullif(name, ''), lock) AS called FROM lock_waits
  WHERE kind IN ('mutex', 'rwlock', 'rwlock (shared)', 'spinlock')),
sums AS (
  SELECT pid, lock, arg_max(kind, duration_ns) AS kind, arg_max(called, duration_ns) AS called, count(*) AS waits,
         count(holder_tid) AS known, count(DISTINCT tid) AS threads, sum(duration_ns) AS total_ns,
         max(duration_ns) AS longest_ns, arg_max(begin_ns, duration_ns) AS begin_ns, arg_max(tid, duration_ns) AS tid,
         arg_max(thread, duration_ns) AS thread, mode(function) AS function, mode(held_in) AS held_in
  FROM waits GROUP BY pid, lock),
worst AS (
  SELECT s.*, p.call FROM sums s
  LEFT JOIN calls z ON z.pid = s.pid AND z.tid = s.tid AND z.begin_ns = s.begin_ns AND z.function LIKE 'wait for %'
  LEFT JOIN calls p ON p.id = coalesce(z.parent, z.id))
SELECT format('{} threads wait for {} {}, mostly in {}', threads, kind, called, plain(function)) AS title,
       format('{} waits; the longest is one of {:.3f} ms. Who had it was mostly in {}. Hold it for less time, or '
              || 'give each thread data of its own.', waits, longest_ns / 1e6, plain(held_in)) AS sentence,
       begin_ns, longest_ns AS duration_ns, tid, thread, call, waits AS amount, 'waits' AS unit, total_ns,
       sure(known, waits) AS sure
FROM worst, span WHERE waits >= 10 AND total_ns >= greatest(1000000, 0.05 * span.ns);
