-- name: promote_due
WITH due AS MATERIALIZED (
    SELECT seq FROM waiting WHERE unmet = 0 AND run_at <= %s ORDER BY run_at LIMIT %s FOR UPDATE SKIP LOCKED
)
UPDATE standing SET place = 1 WHERE place = 0 AND seq = ANY (ARRAY(SELECT seq FROM due))

-- name: situation
-- What is paused, and what comes due next; `control` tells whether the limits known are still those that hold. With
-- `look` also which streams have ready jobs. It notes what the worker has started on the way: every trip is time.
WITH noted AS (
    UPDATE worker SET started_upto = :started_upto, unstarted = :unstarted
    WHERE id = :owner AND (started_upto < :started_upto OR unstarted <> :unstarted)
)
SELECT
    (SELECT epoch FROM meta),
    (SELECT control FROM meta),
    (SELECT coalesce(json_agg(json_build_array(tenant, name)), '[]') FROM queue WHERE paused = 1),
    (SELECT coalesce(json_agg(json_build_array(run_at, lane)), '[]') FROM (
        SELECT run_at, stream / 2 AS lane FROM waiting WHERE unmet = 0 ORDER BY run_at LIMIT :dues
    ) AS due),
    (SELECT min(wake_at) FROM waiting WHERE wake_at IS NOT NULL),
    CASE WHEN :look::boolean THEN (/* see survey */) END

-- name: survey
-- Which streams have ready jobs: one step through the index each, however many jobs they hold. Those of limit keys begin
-- at 2^41: of each (tenant, queue, type) only the first. And how long that took here, in µs: dead rows on the
-- way show in nothing else.
WITH RECURSIVE found (began, stream) AS (
    SELECT clock_timestamp(), (SELECT stream FROM ready ORDER BY stream LIMIT 1)
    UNION ALL
    SELECT began, (
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
SELECT json_build_array(
    coalesce(json_agg(stream) FILTER (WHERE stream IS NOT NULL), '[]'),
    (extract(epoch FROM clock_timestamp() - min(began)) * 1000000)::bigint
)
FROM found

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

-- part: ready_columns
-- The record_columns of jobs that are about to be leased: what a lease sets is left open. Put together as text, which
-- costs half as much as with the functions for JSON (1.6 µs less a job).
coalesce('[' || string_agg(concat('[', concat_ws(
    ',', seq, to_json(id), to_json(tenant), to_json(type), to_json(queue), '"","waiting","submit"', priority, prio_key,
    time_key, created_at, run_at, 0, flags, run, rev, attempt, coalesce(max_attempts::text, 'null'), crashes,
    max_crashes, fence, 'null,0,null,0,null', coalesce(finished_at::text, 'null'), format,
    coalesce(to_json(trace)::text, 'null')
), ']'), ',') || ']', '[]'),
/* see other_columns */

-- name: ready_heads
-- The first jobs of each of many streams, behind the rank given with it. Whatever another claim is looking at is passed
-- over.
WITH found AS MATERIALIZED (
    SELECT head.*
    FROM json_array_elements(%s) AS wanted
    CROSS JOIN LATERAL (
        SELECT * FROM ready
        WHERE stream = (wanted ->> 0)::bigint
            AND (prio_key, time_key, seq) > ((wanted ->> 1)::bigint, (wanted ->> 2)::bigint, (wanted ->> 3)::bigint)
            AND format <= %s
        ORDER BY prio_key, time_key, seq
        LIMIT %s
        FOR UPDATE SKIP LOCKED
    ) AS head
)
SELECT /* see ready_columns */
FROM found
JOIN LATERAL (SELECT * FROM submitted WHERE submitted.seq = found.seq OFFSET 0) AS body USING (seq)

-- name: ready_jobs
-- The next jobs of one stream, in order. Whatever another claim is looking at is passed over.
WITH found AS MATERIALIZED (
    SELECT * FROM ready
    WHERE stream = %s AND (prio_key, time_key, seq) > (%s::bigint, %s::bigint, %s::bigint) AND format <= %s
    ORDER BY prio_key, time_key, seq
    LIMIT %s
    FOR UPDATE SKIP LOCKED
)
SELECT /* see ready_columns */
FROM found
JOIN LATERAL (SELECT * FROM submitted WHERE submitted.seq = found.seq OFFSET 0) AS body USING (seq)

-- name: lease_jobs
-- What domain.transition.claim does to the record.
UPDATE standing SET
    place = 2, status = 'running', last_move = 'claim', rev = rev + 1, updated_at = %(4)s, attempt = attempt + 1,
    fence = greatest(fence, %(5)s) + 1, owner = %(6)s, ticket = each(2 bigint), lease_expires_at = each(3 bigint),
    start_rev = rev + 1, started_at = %(7)s
WHERE place = 1 AND seq = ANY (%(1)s::bigint[])
