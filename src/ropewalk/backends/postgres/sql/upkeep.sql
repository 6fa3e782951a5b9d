-- Maintenance. Each statement locks the rows that it finds and skips those that others have locked, so that nothing
-- changes between reading and writing.

-- name: expired_leases
WITH lost AS MATERIALIZED (
    SELECT seq FROM running WHERE lease_expires_at <= %s
    ORDER BY lease_expires_at, seq
    LIMIT %s
    FOR UPDATE SKIP LOCKED
)
SELECT coalesce(json_agg(seq), '[]') FROM lost

-- name: earliest_expiry
SELECT min(lease_expires_at) FROM running WHERE lease_expires_at > %s

-- name: started_tickets
SELECT coalesce(json_object_agg(id, json_build_array(started_upto, unstarted::json, unanswered::json)), '{}') FROM worker

-- name: past_deadline
WITH late AS MATERIALIZED (
    SELECT seq FROM job_by_stage WHERE deadline IS NOT NULL AND deadline <= %s AND stage < 2
    ORDER BY deadline, seq
    LIMIT %s
    FOR UPDATE SKIP LOCKED
)
SELECT coalesce(json_agg(seq), '[]') FROM late

-- name: waits_ahead
-- Returns jobs with relative waits that began after this instant, and so by a clock that was set back since
-- (domain/jobs/clock_set_back.py; 65536 is AT_FIXED_TIME).
WITH ahead AS MATERIALIZED (
    SELECT seq FROM waiting
    WHERE (wake_at IS NOT NULL OR (unmet = 0 AND (flags & 65536) = 0)) AND updated_at > %s
    ORDER BY updated_at, seq
    LIMIT %s
    FOR UPDATE SKIP LOCKED
)
SELECT coalesce(json_agg(seq), '[]') FROM ahead

-- name: workers_ahead
WITH ahead AS MATERIALIZED (SELECT id, beat_at FROM worker WHERE beat_at > %s FOR NO KEY UPDATE SKIP LOCKED)
SELECT coalesce(json_agg(json_build_array(id, beat_at)), '[]') FROM ahead

-- name: bring_leases_nearer
-- A lease that is being renewed at this moment will be right, and is skipped.
WITH given AS (SELECT %s::text AS owner, %s::bigint AS ahead_us, %s::bigint AS now),
old AS MATERIALIZED (
    SELECT running.ctid FROM given
    JOIN running ON running.owner = given.owner AND running.lease_expires_at > given.now + given.ahead_us
    FOR NO KEY UPDATE OF running SKIP LOCKED
)
UPDATE running SET lease_expires_at = lease_expires_at - (SELECT ahead_us FROM given)
WHERE ctid = ANY (ARRAY(SELECT ctid FROM old))

-- name: bring_beat_nearer
UPDATE worker SET beat_at = %s WHERE id = %s

-- name: types
SELECT coalesce(json_agg(type), '[]') FROM (SELECT DISTINCT type FROM lane) AS named

-- part: is_needed
-- Whether a finished job (`old`, and `body` with its submitted columns) owns an open scope, or a job that has not
-- ended depends on it, or on the chain of which it is a later member.
EXISTS (SELECT 1 FROM scope WHERE scope.id = old.seq AND closed_at IS NULL)
OR EXISTS (
    SELECT 1
    FROM edge
    CROSS JOIN LATERAL (SELECT 1 FROM job_by_stage WHERE seq = edge.seq AND stage < 3 OFFSET 0) AS child
    WHERE edge.parent = old.seq
)
OR (body.chain_index > 0 AND EXISTS (
    SELECT 1
    FROM edge
    CROSS JOIN LATERAL (SELECT 1 FROM job_by_stage WHERE seq = edge.seq AND stage < 3 OFFSET 0) AS child
    WHERE edge.parent = body.scope_id AND edge.parent_kind = 'chain'
))

-- name: past_retention
-- A key keeps its job while its window lasts, because a repeated submission must find the job. Jobs that other jobs
-- need stay, too; most jobs have no flag that makes it necessary to check that. The oldest jobs of each lane come
-- first.
WITH given AS (SELECT %s::text AS status, %s::text AS type, %s::bigint AS upto, %s::bigint AS now, %s::integer AS marks),
gone AS MATERIALIZED (
    SELECT old.seq
    FROM given
    JOIN lane ON lane.type = given.type
    CROSS JOIN unnest(ARRAY[2 * lane.id, 2 * lane.id + 1]) AS wanted (sublane)
    CROSS JOIN LATERAL (
        SELECT seq, flags FROM finished
        WHERE status = given.status AND sublane = wanted.sublane AND finished_at <= given.upto
        ORDER BY finished_at
        FOR UPDATE SKIP LOCKED
    ) AS old
    CROSS JOIN LATERAL (
        SELECT id, tenant, type, idempotency_key, chain_index, scope_id FROM submitted WHERE submitted.seq = old.seq OFFSET 0
    ) AS body
    WHERE NOT EXISTS (
        SELECT 1 FROM key
        WHERE key.tenant = body.tenant AND key.type = body.type AND key.key = body.idempotency_key
            AND key.job_id = body.id AND key.opened_at + key.keep_us > given.now
    ) AND NOT ((old.flags & given.marks) <> 0 AND (/* see is_needed */))
    LIMIT %s
)
SELECT coalesce(json_agg(seq), '[]') FROM gone

-- name: delete_keys_of
WITH gone AS MATERIALIZED (
    SELECT held.ctid
    FROM submitted
    CROSS JOIN LATERAL (
        SELECT key.ctid FROM key
        WHERE key.tenant = submitted.tenant AND key.type = submitted.type AND key.key = submitted.idempotency_key
            AND key.job_id = submitted.id
        FOR UPDATE
    ) AS held
    WHERE submitted.seq = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))
        AND submitted.idempotency_key IS NOT NULL
)
DELETE FROM key WHERE ctid = ANY (ARRAY(SELECT ctid FROM gone))

-- name: delete_attempts
DELETE FROM attempt WHERE seq = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))

-- name: delete_events
DELETE FROM event WHERE seq = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))

-- name: delete_lines
DELETE FROM log WHERE seq = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))

-- name: delete_jobs
WITH gone AS (
    DELETE FROM finished
    WHERE seq = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))
    RETURNING seq
)
DELETE FROM submitted WHERE seq = ANY (ARRAY(SELECT seq FROM gone))

-- name: results_upto
SELECT coalesce((SELECT results_upto FROM dropped_results WHERE type = %s), 0)

-- name: old_results
WITH old AS MATERIALIZED (
    SELECT seq, finished_at
    FROM (SELECT %(1)s::text AS type, %(2)s::bigint AS upto, %(3)s::bigint AS before, %(4)s::bigint AS most) AS given
    JOIN lane ON lane.type = given.type
    CROSS JOIN unnest(ARRAY[2 * lane.id, 2 * lane.id + 1]) AS wanted (sublane)
    CROSS JOIN LATERAL (
        SELECT seq, finished_at FROM finished
        WHERE status = 'completed' AND sublane = wanted.sublane
            AND finished_at BETWEEN given.upto AND given.before AND result IS NOT NULL AND (flags & 769) = 0
        ORDER BY finished_at
        LIMIT given.most
        FOR UPDATE
    ) AS found
    ORDER BY finished_at
    LIMIT %(4)s
)
SELECT coalesce(json_agg(json_build_array(seq, finished_at)), '[]') FROM old

-- name: old_shared_results
-- Returns jobs that others may need (769 is MAY_BE_NEEDED) and whose results are old. They have an index of their
-- own, because they are read again and again until nobody needs them.
WITH given AS (SELECT %s::text AS type, %s::bigint AS before, %s::bigint AS most),
found AS MATERIALIZED (
    SELECT old.seq
    FROM given
    JOIN lane ON lane.type = given.type
    CROSS JOIN unnest(ARRAY[2 * lane.id, 2 * lane.id + 1]) AS wanted (sublane)
    CROSS JOIN LATERAL (
        SELECT seq, finished_at FROM finished
        WHERE status = 'completed' AND (flags & 769) <> 0 AND result IS NOT NULL
            AND sublane = wanted.sublane AND finished_at <= given.before
        ORDER BY finished_at
        FOR UPDATE SKIP LOCKED
    ) AS old
    CROSS JOIN LATERAL (SELECT chain_index, scope_id FROM submitted WHERE submitted.seq = old.seq OFFSET 0) AS body
    WHERE NOT (/* see is_needed */)
    ORDER BY old.finished_at
    LIMIT (SELECT most FROM given)
)
SELECT coalesce(json_agg(seq), '[]') FROM found

-- name: forget_results
UPDATE finished SET result = NULL, flags = flags | %s
WHERE seq = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))

-- name: note_forgotten
INSERT INTO dropped_results (type, results_upto) VALUES (%s, %s)
ON CONFLICT (type) DO UPDATE SET results_upto = greatest(dropped_results.results_upto, excluded.results_upto)

-- name: prune_once
WITH gone AS MATERIALIZED (SELECT ctid FROM once_key WHERE expires_at <= %s LIMIT %s FOR UPDATE SKIP LOCKED)
DELETE FROM once_key WHERE ctid = ANY (ARRAY(SELECT ctid FROM gone))

-- name: prune_workers
DELETE FROM worker WHERE beat_at <= %s

-- name: take_once
-- The caller that took the key first, and asks again under the same id, gets the same answer; it does not hold the
-- key for longer.
INSERT INTO once_key (tenant, key, taken_by, expires_at) VALUES (%s, %s, %s, %s)
ON CONFLICT (tenant, key) DO UPDATE SET
    expires_at = CASE WHEN once_key.expires_at <= %s THEN excluded.expires_at ELSE once_key.expires_at END,
    taken_by = excluded.taken_by
WHERE once_key.expires_at <= %s OR once_key.taken_by = excluded.taken_by

-- name: is_taken_once
SELECT 1 FROM once_key WHERE tenant = %s AND key = %s AND expires_at > %s

-- name: set_paused
INSERT INTO queue (tenant, name, paused) VALUES (%s, %s, %s)
ON CONFLICT (tenant, name) DO UPDATE SET paused = excluded.paused WHERE queue.paused <> excluded.paused
