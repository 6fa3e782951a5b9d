-- What the holder of a lease writes. Every statement checks the fence and the owner.

-- part: begun
(extract(epoch FROM transaction_timestamp()) * 1000000)::bigint

-- part: completed
-- Writes what domain.jobs.transition.settle changes in the record of a completion.
stage = 3, status = 'completed', last_move = 'complete', rev = rev + 1, updated_at = {now}, finished_at = {now},
lease_expires_at = NULL, error = NULL, result = {result}

-- name: complete_plain
-- Completes those of these jobs that the owner holds and that have no other flags than these. Rows that were locked
-- are evaluated again after the lock wait (READ COMMITTED). Returns, column by column, the number and the lane of
-- each job, how long it waited, how long it ran, and how long it took in all. Without a time, the time is that at
-- which the transaction began.
WITH given AS MATERIALIZED (SELECT coalesce(%(4)s::bigint, /* see begun */) AS now),
done AS (
    UPDATE job_by_stage SET
        /* see completed
        now = (SELECT now FROM given)
        result = each(3 bytea)
        */
    WHERE stage = 2 AND seq = ANY (%(1)s::bigint[]) AND fence = each(2 bigint) AND owner = %(5)s
        AND (flags & ~(%(6)s::integer)) = 0
    RETURNING seq, sublane / 2 AS lane, run_at, started_at, created_at, finished_at
)
SELECT json_build_array(
    coalesce(json_agg(seq), '[]'), coalesce(json_agg(lane), '[]'), coalesce(json_agg(started_at - run_at), '[]'),
    coalesce(json_agg(finished_at - started_at), '[]'), coalesce(json_agg(finished_at - created_at), '[]')
) FROM done

-- name: complete_in_one_statement
-- Completes all of these jobs or none: if one of them cannot be completed so, the statement fails, because it could
-- not report that otherwise without another round trip. It also writes the counters of the jobs: the bucket of a
-- histogram is what a span begins with as a float (domain.statistics.histogram). If a worker measured how long a job
-- waited there and ran, these times are used. All results come in one piece, with the place at which each begins.
WITH given AS MATERIALIZED (SELECT coalesce(:now::bigint, /* see begun */) AS now),
done AS (
    UPDATE job_by_stage SET
        /* see completed
        now = (SELECT now FROM given)
        result = substring(:results::bytea FROM each(3 integer) FOR each(4 integer))
        */
    WHERE stage = 2 AND seq = ANY (%(1)s::bigint[]) AND fence = each(2 bigint) AND owner = :owner
        AND (flags & ~(:flags::integer)) = 0
    RETURNING
        sublane / 2 AS lane, greatest(0, started_at - run_at) + coalesce(each(5 bigint), 0) AS wait,
        coalesce(each(6 bigint), greatest(0, finished_at - started_at)) AS run,
        greatest(0, finished_at - created_at) AS total
),
alike AS MATERIALIZED (
    SELECT
        CASE WHEN lane < 1099511627776 THEN lane ELSE lane >> 40 END AS lane,
        CASE wait WHEN 0 THEN 0 ELSE
            (get_byte(float8send(wait::float8), 0) << 7) + (get_byte(float8send(wait::float8), 1) >> 1) - 8183
        END AS wait,
        CASE run WHEN 0 THEN 0 ELSE
            (get_byte(float8send(run::float8), 0) << 7) + (get_byte(float8send(run::float8), 1) >> 1) - 8183
        END AS run,
        CASE total WHEN 0 THEN 0 ELSE
            (get_byte(float8send(total::float8), 0) << 7) + (get_byte(float8send(total::float8), 1) >> 1) - 8183
        END AS total,
        count(*) AS jobs, sum(wait) AS waits, sum(run) AS runs, sum(total) AS totals, max(wait) AS wait_max,
        max(run) AS run_max, max(total) AS total_max
    FROM done
    GROUP BY 1, 2, 3, 4
),
counted AS (
    SELECT lane, kind, bucket, sum(jobs) AS jobs, sum(sum) AS sum, max(max) AS max
    FROM alike
    CROSS JOIN LATERAL (
        VALUES ('wait', wait, waits, wait_max), ('run', run, runs, run_max), ('total', total, totals, total_max)
    ) AS span (kind, bucket, sum, max)
    GROUP BY lane, kind, bucket
),
histogram AS (
    SELECT lane, kind, sum(jobs) AS jobs, json_build_object(
        'counts', json_object_agg(bucket, jobs), 'sum', sum(sum), 'max', max(max)
    ) AS spans
    FROM counted
    GROUP BY lane, kind
),
tallied AS (
    INSERT INTO counters (at, lane, counts)
    SELECT
        (SELECT now / 60000000 * 60000000 FROM given), lane,
        concat('{"ended":{"completed":', max(jobs), '},', ltrim(json_object_agg(kind, spans)::text, '{'))
    FROM histogram
    GROUP BY lane
)
SELECT 1 / (count(*) = cardinality(%(1)s::bigint[]))::integer FROM done

-- name: leases_to_renew
-- Returns the leases that can be renewed, even if a user's open transaction refers to their jobs (KEY SHARE): a
-- renewal changes nothing that the transaction has read.
WITH held AS MATERIALIZED (
    SELECT seq, fence, cancel FROM running
    WHERE seq = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s))) AND owner = %s
    FOR NO KEY UPDATE SKIP LOCKED
)
SELECT coalesce(json_agg(json_build_array(seq, fence, cancel::json)), '[]') FROM held

-- name: standing_of
SELECT coalesce(json_agg(json_build_array(seq, fence, owner, status)), '[]') FROM job_by_stage
WHERE seq = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))

-- name: insert_lines
INSERT INTO log (seq, fence, position, attempt, at, level, message, fields)
SELECT * FROM unnest(
    %s::bigint[], %s::bigint[], %s::integer[], %s::bigint[], %s::bigint[], %s::integer[], %s::text[], %s::text[]
)
ON CONFLICT DO NOTHING

-- name: trim_lines
DELETE FROM log WHERE seq = ANY (ARRAY[%s::bigint]) AND (fence, position) <= (
    SELECT fence, position FROM log WHERE seq = %s::bigint ORDER BY fence DESC, position DESC OFFSET %s::bigint LIMIT 1
)

-- name: renew_leases
UPDATE running SET lease_expires_at = each(3 bigint), progress = coalesce(each(4 text), progress)
WHERE seq = ANY (%(1)s::bigint[]) AND fence = each(2 bigint) AND owner = %(5)s

-- name: write_note
UPDATE running SET checkpoint = %s, progress = %s WHERE seq = %s AND fence = %s AND owner = %s

-- name: register_worker
INSERT INTO worker (id, host, pid, types, queues, tenants, concurrency, started_at, beat_at, lease_us)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (id) DO UPDATE SET
    host = excluded.host, pid = excluded.pid, types = excluded.types, queues = excluded.queues,
    tenants = excluded.tenants, concurrency = excluded.concurrency, beat_at = excluded.beat_at,
    lease_us = excluded.lease_us

-- name: beat
-- Records that a worker lives, and returns whether it has to drain. A claim of the same worker may have locked its
-- row while it waits for other locks; the renewal does not wait for it, and still reads whether to drain.
WITH given AS (SELECT %s::bigint AS now, %s::text AS id),
own AS MATERIALIZED (
    SELECT worker.ctid FROM given JOIN worker ON worker.id = given.id FOR NO KEY UPDATE OF worker SKIP LOCKED
),
beaten AS (UPDATE worker SET beat_at = (SELECT now FROM given) WHERE ctid = ANY (ARRAY(SELECT ctid FROM own)))
SELECT draining FROM worker WHERE id = (SELECT id FROM given)

-- name: drain_worker
UPDATE worker SET draining = 1 WHERE id = %s

-- name: unregister_worker
DELETE FROM worker WHERE id = %s

-- name: bump_control
UPDATE meta SET control = control + 1
