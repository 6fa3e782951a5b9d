-- Counters of the jobs that moved. `counts` is JSON (domain.statistics.counters.Counters), which Python adds up; the
-- statements only find it and put it into the answer as it is. Two folds at the same time skip the rows that the
-- other one has locked.

-- part: counts
counts

-- part: counts_carefully
readable_json(counts)

-- name: insert_counters
INSERT INTO counters (at, lane, counts) SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::text[])

-- name: oldest_counters
WITH oldest AS MATERIALIZED (SELECT id, at, lane, counts FROM counters ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED)
SELECT '[' || coalesce(string_agg(format('[%%s,%%s,%%s,%%s]', id, at, lane, /* see counts */), ','), '') || ']' FROM oldest

-- name: delete_counters
DELETE FROM counters WHERE id = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))

-- name: sums_to_fold
WITH held AS MATERIALIZED (
    SELECT found.*
    FROM json_array_elements(%s) AS wanted
    CROSS JOIN LATERAL (
        SELECT id, span_us, at, lane, counts FROM counter_sums
        WHERE span_us = (wanted ->> 0)::bigint AND lane = (wanted ->> 2)::bigint AND at = (wanted ->> 1)::bigint
        FOR UPDATE SKIP LOCKED
    ) AS found
)
SELECT '[' || coalesce(string_agg(format('[%%s,%%s,%%s,%%s,%%s]', id, span_us, at, lane, /* see counts */), ','), '') || ']'
FROM held

-- name: delete_sums
DELETE FROM counter_sums WHERE id = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))

-- name: insert_sums
INSERT INTO counter_sums (span_us, at, lane, counts)
SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::text[])

-- name: forget_sums
WITH old AS MATERIALIZED (
    SELECT id FROM counter_sums WHERE span_us = %s AND at <= %s LIMIT %s FOR UPDATE SKIP LOCKED
)
DELETE FROM counter_sums WHERE id = ANY (ARRAY(SELECT id FROM old))

-- name: finished_counts_of
SELECT coalesce(json_agg(json_build_array(lane, status, jobs)), '[]') FROM (
    SELECT sublane / 2 AS lane, status, count(*) AS jobs FROM finished
    WHERE seq = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))
    GROUP BY 1, 2
) AS gone

-- name: lanes_counted
SELECT coalesce(json_agg(json_build_array(id, lane.queue, lane.type)), '[]')
FROM (SELECT %s::text AS tenant, %s::text AS queue, %s::text AS type) AS given
JOIN lane ON lane.tenant = given.tenant AND lane.limit_key = ''
    AND (given.queue IS NULL OR lane.queue = given.queue) AND (given.type IS NULL OR lane.type = given.type)

-- name: lanes_of_types
-- Returns the lanes of these types for all tenants, without the lanes of limit keys, which may be very many and have
-- larger numbers.
SELECT coalesce(json_agg(json_build_array(id, tenant)), '[]') FROM lane
WHERE id < %s AND type = ANY (ARRAY(SELECT json_array_elements_text(%s)))

-- name: counters_of
-- Returns the counters that are not folded yet, the sums of one span, and the sums of all time.
WITH wanted AS MATERIALIZED (SELECT value::bigint AS lane FROM json_array_elements_text(%(1)s))
SELECT '[' || coalesce(string_agg(format('[%%s,%%s,%%s,%%s]', span_us, at, lane, /* see counts */), ','), '') || ']' FROM (
    SELECT 'null' AS span_us, at, lane, counts FROM counters WHERE lane = ANY (ARRAY(SELECT lane FROM wanted))
    UNION ALL
    SELECT found.*
    FROM wanted
    CROSS JOIN LATERAL (
        SELECT span_us::text, at, counter_sums.lane, counts FROM counter_sums
        WHERE span_us = %(2)s AND counter_sums.lane = wanted.lane AND at >= %(3)s AND at < %(4)s
        OFFSET 0
    ) AS found
    UNION ALL
    SELECT found.*
    FROM wanted
    CROSS JOIN LATERAL (
        SELECT '0', at, counter_sums.lane, counts FROM counter_sums WHERE span_us = 0 AND counter_sums.lane = wanted.lane
        OFFSET 0
    ) AS found
) AS counted

-- name: not_ready
-- Counts open jobs that are not ready. The ready ones are those that remain of all open jobs.
SELECT coalesce(json_agg(json_build_array(lane, state, jobs)), '[]') FROM (
    SELECT lane.id AS lane, state, count(*) AS jobs
    FROM (SELECT %s::text AS tenant, %s::bigint AS now) AS given
    JOIN lane ON lane.tenant = given.tenant
    JOIN job_by_stage ON stage IN (0, 2) AND sublane / 2 = lane.id
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN stage = 2 THEN 'running'
            WHEN unmet > 0 THEN 'pending'
            WHEN run_at <= given.now THEN 'scheduled'
            WHEN last_move = 'retry' THEN 'retrying'
            ELSE 'delayed'
        END
    ) AS told (state)
    GROUP BY 1, 2
) AS counted
