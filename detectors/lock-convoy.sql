-- name: lock-convoy
-- sentence: Threads queue up for a lock, and each that gets it finds others behind it.
-- needs: locks
--
-- A convoy is a time in which at each moment somebody waits for the lock. 10 waits of 3 threads: two threads that meet
-- are contention alone. 1 ms: what is shorter nobody notices.
-- Sure: the share of the waits that began while another thread waited, but for the first.
WITH waits AS (
  SELECT *, begin_ns + duration_ns AS end_ns, coalesce(nullif(name, ''), lock) AS called FROM lock_waits
  WHERE kind IN ('mutex', 'rwlock', 'rwlock (shared)', 'spinlock')),
after AS (
  SELECT *, max(end_ns) OVER (PARTITION BY pid, lock ORDER BY begin_ns, tid
                              ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ns FROM waits),
numbered AS (
  SELECT *, sum((before_ns IS NULL OR begin_ns > before_ns)::INT)
            OVER (PARTITION BY pid, lock ORDER BY begin_ns, tid ROWS UNBOUNDED PRECEDING) AS convoy FROM after),
queued AS (SELECT *, coalesce(before_ns > begin_ns, false) AS is_behind FROM numbered),
convoys AS (
  SELECT pid, lock, convoy, any_value(kind) AS kind, any_value(called) AS called, count(*) AS waits,
         count(DISTINCT tid) AS threads, count_if(is_behind) AS behind, min(begin_ns) AS begin_ns,
         max(end_ns) AS end_ns, sum(duration_ns) AS waited_ns, arg_min(tid, begin_ns) AS tid,
         arg_min(thread, begin_ns) AS thread, mode(function) AS function
  FROM queued GROUP BY pid, lock, convoy
  HAVING count(*) >= 10 AND count(DISTINCT tid) >= 3 AND max(end_ns) - min(begin_ns) >= 1000000
     AND 2 * count_if(is_behind) >= count(*)),
longest AS (
  SELECT *, count(*) OVER w AS convoys, sum(waited_ns) OVER w AS total_ns,
         row_number() OVER (PARTITION BY pid, lock ORDER BY end_ns - begin_ns DESC) AS place
  FROM convoys WINDOW w AS (PARTITION BY pid, lock))
SELECT format('{} threads queue for {} {} in {}', threads, l.kind, called, plain(l.function)) AS title,
       format('{} waits in a row, {} of them behind another one, over {:.3f} ms. Such convoys in all: {}. Take the '
              || 'lock less often, or do the work outside of it.', waits, behind,
              (l.end_ns - l.begin_ns) / 1e6, convoys) AS sentence,
       l.begin_ns, l.end_ns - l.begin_ns AS duration_ns, l.tid, l.thread, p.call, waits AS amount, 'waits' AS unit,
       total_ns, sure(behind, waits - 1) AS sure
FROM longest l
LEFT JOIN calls z ON z.pid = l.pid AND z.tid = l.tid AND z.begin_ns = l.begin_ns AND z.function LIKE 'wait for %'
LEFT JOIN calls p ON p.id = coalesce(z.parent, z.id)
WHERE place = 1;
