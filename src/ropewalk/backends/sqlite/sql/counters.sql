-- Counters of the jobs that moved. `counts` is JSON (domain.statistics.counters.Counters), which Python adds up; the
-- statements only find it and put it into the answer as it is.

-- part: counts
counts

-- part: counts_carefully
iif(json_valid(counts), counts, 'null')

-- name: insert_counters
INSERT INTO counters (at, lane, counts) VALUES (?, ?, ?) /* each row */

-- name: oldest_counters
SELECT '[' || coalesce(group_concat(printf('[%d,%d,%d,%s]', id, at, lane, /* see counts */)), '') || ']'
FROM (SELECT * FROM counters ORDER BY id LIMIT ? + 0)

-- name: delete_counters
DELETE FROM counters WHERE id IN (SELECT value FROM json_each(?))

-- name: sums_to_fold
SELECT '[' || coalesce(group_concat(printf('[%d,%d,%d,%d,%s]', counter_sums.id, span_us, at, lane, /* see counts */)), '') || ']'
FROM json_each(?) AS wanted
CROSS JOIN counter_sums ON span_us = json_extract(wanted.value, '$[0]') AND lane = json_extract(wanted.value, '$[2]')
    AND at = json_extract(wanted.value, '$[1]')

-- name: delete_sums
DELETE FROM counter_sums WHERE id IN (SELECT value FROM json_each(?))

-- name: insert_sums
INSERT INTO counter_sums (span_us, at, lane, counts) VALUES (?, ?, ?, ?) /* each row */

-- name: forget_sums
DELETE FROM counter_sums WHERE id IN (SELECT id FROM counter_sums WHERE span_us = ? AND at <= ? LIMIT ? + 0)

-- name: finished_counts_of
SELECT json_group_array(json_array(lane, status, jobs)) FROM (
    SELECT lane, status, count(*) AS jobs
    FROM json_each(?) AS gone
    CROSS JOIN job ON job.seq = gone.value
    WHERE stage = 3
    GROUP BY lane, status
)

-- name: lanes_counted
SELECT json_group_array(json_array(id, queue, type)) FROM lane
WHERE tenant = ?1 AND limit_key = '' AND (?2 IS NULL OR queue = ?2) AND (?3 IS NULL OR type = ?3)

-- name: lanes_of_types
-- Returns the lanes of these types for all tenants, without the lanes of limit keys, which may be very many and have
-- larger numbers.
SELECT json_group_array(json_array(id, tenant)) FROM lane WHERE id < ?1 AND type IN (SELECT value FROM json_each(?2))

-- name: counters_of
-- Returns the counters that are not folded yet, the sums of one span, and the sums of all time.
SELECT '[' || coalesce(group_concat(printf('[%s,%d,%d,%s]', span_us, at, lane, /* see counts */)), '') || ']' FROM (
    SELECT 'null' AS span_us, at, lane, counts FROM counters WHERE lane IN (SELECT value FROM json_each(?1))
    UNION ALL
    SELECT span_us, at, lane, counts
    FROM json_each(?1) AS wanted
    CROSS JOIN counter_sums ON span_us = ?2 AND lane = wanted.value AND at >= ?3 AND at < ?4
    UNION ALL
    SELECT span_us, at, lane, counts
    FROM json_each(?1) AS wanted
    CROSS JOIN counter_sums ON span_us = 0 AND lane = wanted.value
)

-- name: not_ready
-- Counts open jobs that are not ready. The ready ones are those that remain of all open jobs.
SELECT json_group_array(json_array(lane, state, jobs)) FROM (
    SELECT lane, iif(run_at <= ?2, 'scheduled', iif(last_move = 'retry', 'retrying', 'delayed')) AS state, count(*) AS jobs
    FROM job WHERE stage = 0 AND unmet = 0 AND tenant = ?1
    GROUP BY 1, 2
    UNION ALL
    SELECT lane, 'pending', count(*) FROM job WHERE stage = 0 AND unmet > 0 AND tenant = ?1 GROUP BY 1
    UNION ALL
    SELECT lane, 'running', count(*) FROM job WHERE stage = 2 AND tenant = ?1 GROUP BY 1
)
