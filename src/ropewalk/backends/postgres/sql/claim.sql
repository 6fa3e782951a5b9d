-- name: note_started
UPDATE worker SET started_upto = %s, unstarted = %s WHERE id = %s AND (started_upto < %s OR unstarted <> %s)

-- name: promote_due
WITH due AS MATERIALIZED (
    SELECT seq FROM waiting WHERE unmet = 0 AND run_at <= %s ORDER BY run_at LIMIT %s FOR UPDATE SKIP LOCKED
)
UPDATE standing SET place = 1 WHERE place = 0 AND seq = ANY (ARRAY(SELECT seq FROM due))

-- name: situation
-- What is paused, and what comes due next; `control` tells whether the limits known are still those that hold.
SELECT
    (SELECT epoch FROM meta),
    (SELECT control FROM meta),
    (SELECT coalesce(json_agg(json_build_array(tenant, name)), '[]') FROM queue WHERE paused = 1),
    (SELECT coalesce(json_agg(json_build_array(run_at, lane)), '[]') FROM (
        SELECT run_at, stream / 2 AS lane FROM waiting WHERE unmet = 0 ORDER BY run_at LIMIT %s
    ) AS due),
    (SELECT min(wake_at) FROM waiting WHERE wake_at IS NOT NULL)

-- name: survey
-- Which streams have ready jobs: one step through the index each, however many jobs they hold. Those of limit keys begin
-- at 2^41: of each (tenant, queue, type) only the first. And how long that took here, in µs: dead rows on the
-- way show in nothing else.
WITH RECURSIVE found (stream) AS (
    (SELECT stream FROM ready ORDER BY stream LIMIT 1)
    UNION ALL
    SELECT (
        SELECT ready.stream FROM ready
        WHERE ready.stream >= CASE
            WHEN found.stream < 2199023255552 THEN found.stream + 1 ELSE ((found.stream >> 41) + 1) << 41
        END
        ORDER BY ready.stream
        LIMIT 1
    )
    FROM found
    WHERE found.stream IS NOT NULL
)
SELECT
    coalesce(json_agg(stream), '[]'),
    (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000000)::bigint
FROM found
WHERE stream IS NOT NULL

-- name: survey_keys
-- The next streams of the limit keys of one (tenant, queue, type).
WITH RECURSIVE given AS (SELECT %s::bigint AS behind, %s::bigint AS before, %s::integer AS most),
found (stream, number) AS (
    SELECT (
        SELECT ready.stream FROM ready
        WHERE ready.stream > given.behind AND ready.stream < given.before ORDER BY ready.stream LIMIT 1
    ), 1
    FROM given
    UNION ALL
    SELECT (
        SELECT ready.stream FROM ready
        WHERE ready.stream > found.stream AND ready.stream < given.before ORDER BY ready.stream LIMIT 1
    ), number + 1
    FROM found
    CROSS JOIN given
    WHERE found.stream IS NOT NULL AND number < given.most
)
SELECT coalesce(json_agg(stream), '[]') FROM found WHERE stream IS NOT NULL

-- name: ready_heads
-- The first jobs of each of many streams, behind the rank given with it. Whatever another claim is looking at is passed
-- over.
WITH found AS MATERIALIZED (
    SELECT head.*
    FROM json_array_elements(%s) AS wanted
    CROSS JOIN LATERAL (
        SELECT
            prio_key, time_key, seq, stream, (crashes > 0)::integer AS suspect, deadline,
            (max_attempts IS NOT NULL AND attempt + 1 >= max_attempts)::integer AS last_attempt
        FROM ready
        WHERE stream = (wanted ->> 0)::bigint
            AND (prio_key, time_key, seq) > ((wanted ->> 1)::bigint, (wanted ->> 2)::bigint, (wanted ->> 3)::bigint)
            AND format <= %s
        ORDER BY prio_key, time_key, seq
        LIMIT %s
        FOR UPDATE SKIP LOCKED
    ) AS head
)
SELECT coalesce(json_agg(json_build_array(prio_key, time_key, seq, suspect, last_attempt, deadline, stream)), '[]')
FROM found

-- name: ready_keys
-- The next jobs of one stream, in order: enough of each to decide whether it may be given. Whatever another claim is
-- looking at is passed over.
WITH found AS MATERIALIZED (
    SELECT
        prio_key, time_key, seq, stream, (crashes > 0)::integer AS suspect, deadline,
        (max_attempts IS NOT NULL AND attempt + 1 >= max_attempts)::integer AS last_attempt
    FROM ready
    WHERE stream = %s AND (prio_key, time_key, seq) > (%s::bigint, %s::bigint, %s::bigint) AND format <= %s
    ORDER BY prio_key, time_key, seq
    LIMIT %s
    FOR UPDATE SKIP LOCKED
)
SELECT coalesce(json_agg(json_build_array(prio_key, time_key, seq, suspect, last_attempt, deadline, stream)), '[]')
FROM found

-- name: lease_jobs
UPDATE standing SET
    place = 2, status = 'running', last_move = 'claim', rev = each(2 integer), updated_at = %(7)s,
    attempt = each(3 bigint), fence = each(4 bigint), owner = %(8)s, ticket = each(5 bigint),
    lease_expires_at = each(6 bigint), start_rev = each(2 integer), started_at = %(9)s
WHERE place = 1 AND seq = ANY (%(1)s::bigint[]) AND fence < each(4 bigint)
