-- name: note_started
UPDATE worker SET started_upto = %s WHERE id = %s AND started_upto < %s

-- name: promote_due
WITH due AS MATERIALIZED (
    SELECT seq FROM job WHERE place = 0 AND unmet = 0 AND run_at <= %s ORDER BY run_at LIMIT %s FOR UPDATE SKIP LOCKED
)
UPDATE job SET place = 1 FROM due WHERE job.seq = due.seq

-- name: survey
-- Which streams have ready jobs (one step through the index each, however many jobs they hold), what is paused, and
-- what comes due next.
WITH RECURSIVE found (stream) AS (
    SELECT min(stream) FROM job WHERE place = 1
    UNION ALL
    SELECT (SELECT min(stream) FROM job WHERE place = 1 AND stream > found.stream)
    FROM found
    WHERE found.stream IS NOT NULL
)
SELECT
    (SELECT epoch FROM meta),
    (SELECT coalesce(json_agg(stream), '[]') FROM found WHERE stream IS NOT NULL),
    (SELECT coalesce(json_agg(json_build_array(tenant, name)), '[]') FROM queue WHERE paused = 1),
    (SELECT coalesce(json_agg(json_build_array(run_at, lane)), '[]') FROM (
        SELECT run_at, lane FROM job WHERE place = 0 AND unmet = 0 ORDER BY run_at LIMIT %s
    ) AS due),
    (SELECT min(wake_at) FROM job WHERE wake_at IS NOT NULL AND place = 0)

-- name: ready_keys
-- The next jobs of one stream, in order: enough of each to decide whether it may be given. Whatever another claim is
-- looking at is passed over.
WITH ready AS MATERIALIZED (
    SELECT
        prio_key, time_key, seq, (crashes > 0)::integer AS suspect, deadline,
        (max_attempts IS NOT NULL AND attempt + 1 >= max_attempts)::integer AS last_attempt
    FROM job
    WHERE place = 1 AND stream = %s AND (prio_key, time_key, seq) > (%s::bigint, %s::bigint, %s::bigint)
        AND format <= %s
    ORDER BY prio_key, time_key, seq
    LIMIT %s
    FOR UPDATE SKIP LOCKED
)
SELECT coalesce(json_agg(json_build_array(prio_key, time_key, seq, suspect, last_attempt, deadline)), '[]') FROM ready

-- name: lease_jobs
WITH given (seq, rev, attempt, fence, ticket, lease_expires_at) AS (
    SELECT * FROM unnest(%s::bigint[], %s::integer[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])
)
UPDATE job SET
    place = 2, status = 'running', last_move = 'claim', rev = given.rev, updated_at = %s, attempt = given.attempt,
    fence = given.fence, owner = %s, ticket = given.ticket, lease_expires_at = given.lease_expires_at,
    start_rev = given.rev, started_at = %s
FROM given
WHERE job.seq = given.seq AND job.fence < given.fence AND job.place + 0 = 1
