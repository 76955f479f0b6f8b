-- name: thread-residency
-- sentence: A thread that runs most of the time changes its CPU often, and finds cold caches each time.
-- needs: states
--
-- 20 us is what filling caches anew takes, mostly. That must be 5 % of the thread's time on CPUs.
-- It wants to run for half of its life: a thread that mostly waits may wake anywhere. 10 ms on CPUs, and 50 changes:
-- fewer are the system's usual balance.
-- Sure: the share of its stretches on a CPU that began on another one than the last.
WITH runs AS (
  SELECT pid, tid, thread, cpu, begin_ns, duration_ns, lag(cpu) OVER (PARTITION BY pid, tid ORDER BY begin_ns) AS before
  FROM thread_states WHERE state = 'running' AND cpu IS NOT NULL),
waits AS (SELECT pid, tid, coalesce(sum(duration_ns) FILTER (state = 'blocked'), 0) AS blocked_ns,
                 coalesce(sum(duration_ns) FILTER (state IN ('running', 'woken', 'preempted')), 0) AS ready_ns
          FROM thread_states GROUP BY pid, tid),
sums AS (
  SELECT pid, tid, any_value(thread) AS thread, count(*) AS runs, count_if(cpu <> before) AS changes,
         count(DISTINCT cpu) AS cpus, sum(duration_ns) AS ran_ns, min(begin_ns) AS begin_ns,
         max(begin_ns + duration_ns) - min(begin_ns) AS span_ns
  FROM runs GROUP BY pid, tid)
SELECT format('thread {} {} changes its CPU {} times', tid, thread, changes) AS title,
       format('{:.0f} changes a second on CPUs, between {} of them. Bind it to a CPU, or find who takes its CPU: '
              || 'thread_states says who.', changes * 1e9 / ran_ns, cpus) AS sentence,
       begin_ns, span_ns AS duration_ns, tid, thread, NULL AS call, changes AS amount, 'changes' AS unit,
       20000 * changes AS total_ns, sure(changes, runs - 1) AS sure
FROM sums JOIN waits USING (pid, tid)
WHERE changes >= 50 AND ran_ns >= 10000000 AND ready_ns >= blocked_ns AND 20000 * changes >= 0.05 * ran_ns;
