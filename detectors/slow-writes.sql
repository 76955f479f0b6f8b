-- name: slow-writes
-- sentence: Writes to files, pipes or sockets that took long.
-- needs: files
--
-- 10 ms: a write into the system's cache takes microseconds, a disk's fsync some milliseconds, and a thread that loses
-- its CPU has it back in less, mostly. 3 of them, or one of 100 ms: one of 10 ms is a busy machine's.
-- 1 % of the trace's time: else there is more to gain elsewhere.
-- Sure: the more often the surer; one alone may be chance.
WITH span AS (SELECT max(end_ns) - min(begin_ns) AS ns FROM calls),
slow AS (
  SELECT * FROM file_calls WHERE duration_ns >= 10000000 AND (written > 0 OR call IN
    ('fsync', 'fdatasync', 'sync_file_range', 'fflush', 'fclose', 'close', 'ftruncate', 'truncate', 'fputs', 'puts'))),
sums AS (
  SELECT pid, file, function, count(*) AS times, sum(duration_ns) AS total_ns, sum(written) AS bytes,
         max(duration_ns) AS longest_ns, arg_max(begin_ns, duration_ns) AS begin_ns, arg_max(tid, duration_ns) AS tid,
         arg_max(thread, duration_ns) AS thread, arg_max(call, duration_ns) AS call
  FROM slow GROUP BY pid, file, function)
SELECT format('{} waits up to {:.2f} ms to write to {}', plain(s.function),
              longest_ns / 1e6, s.file) AS title,
       format('{} calls of 10 ms and more; the longest is {}(). Write from another thread, or less often.', times,
              s.call) AS sentence,
       s.begin_ns, longest_ns AS duration_ns, s.tid, s.thread, p.call, times AS amount, 'slow writes' AS unit, total_ns,
       sure(times, times) AS sure
FROM sums s CROSS JOIN span
LEFT JOIN calls z ON z.pid = s.pid AND z.tid = s.tid AND z.begin_ns = s.begin_ns AND z.function = s.call
LEFT JOIN calls p ON p.id = coalesce(z.parent, z.id)
WHERE total_ns >= 0.01 * span.ns AND (times >= 3 OR longest_ns >= 100000000);
