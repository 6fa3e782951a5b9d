-- What is found here is locked as it is found, and what others hold is left to them: between the look and the write
-- nothing changes.

-- name: leases_run_out
WITH lost AS MATERIALIZED (
    SELECT seq FROM job WHERE place = 2 AND lease_expires_at <= %s
    ORDER BY lease_expires_at, seq
    LIMIT %s
    FOR UPDATE SKIP LOCKED
)
SELECT coalesce(json_agg(seq), '[]') FROM lost

-- name: started_upto
SELECT coalesce(json_object_agg(id, started_upto), '{}') FROM worker

-- name: past_deadline
WITH late AS MATERIALIZED (
    SELECT seq FROM job WHERE deadline IS NOT NULL AND deadline <= %s AND place < 2
    ORDER BY deadline, seq
    LIMIT %s
    FOR UPDATE SKIP LOCKED
)
SELECT coalesce(json_agg(seq), '[]') FROM late

-- name: types
SELECT coalesce(json_agg(type), '[]') FROM (SELECT DISTINCT type FROM lane) AS named

-- name: past_retention
-- A key keeps its job while its window lasts: a repeated submission must find what it repeats. What owns an open scope,
-- or what somebody depends on who has not ended, stays, too; most jobs have no flag that makes us look.
WITH gone AS MATERIALIZED (
    SELECT seq FROM job
    WHERE place = 3 AND status = %s AND type = %s AND finished_at <= %s AND NOT EXISTS (
        SELECT 1 FROM key
        WHERE key.tenant = job.tenant AND key.type = job.type AND key.key = job.idempotency_key
            AND key.job_id = job.id AND key.opened_at + key.keep_us > %s
    ) AND NOT ((flags & %s) <> 0 AND (
        EXISTS (SELECT 1 FROM scope WHERE scope.id = job.seq AND closed_at IS NULL) OR EXISTS (
            SELECT 1 FROM edge JOIN job AS child ON child.seq = edge.seq
            WHERE edge.parent = job.seq AND child.place < 3
        )
    ))
    ORDER BY finished_at
    LIMIT %s
    FOR UPDATE OF job SKIP LOCKED
)
SELECT coalesce(json_agg(seq), '[]') FROM gone

-- name: delete_keys_of
DELETE FROM key
USING json_array_elements_text(%s) AS gone
JOIN job ON job.seq = gone.value::bigint
WHERE key.tenant = job.tenant AND key.type = job.type AND key.key = job.idempotency_key AND key.job_id = job.id

-- name: delete_attempts
DELETE FROM attempt USING json_array_elements_text(%s) AS gone WHERE seq = gone.value::bigint

-- name: delete_events
DELETE FROM event USING json_array_elements_text(%s) AS gone WHERE seq = gone.value::bigint

-- name: delete_jobs
DELETE FROM job USING json_array_elements_text(%s) AS gone WHERE seq = gone.value::bigint AND place + 0 = 3

-- name: results_upto
SELECT coalesce((SELECT results_upto FROM forgotten WHERE type = %s), 0)

-- name: old_results
WITH old AS MATERIALIZED (
    SELECT seq, finished_at FROM job
    WHERE place = 3 AND status = 'completed' AND type = %s AND finished_at BETWEEN %s AND %s AND result IS NOT NULL
    ORDER BY finished_at
    LIMIT %s
    FOR UPDATE
)
SELECT coalesce(json_agg(json_build_array(seq, finished_at)), '[]') FROM old

-- name: forget_results
UPDATE job SET result = NULL
FROM json_array_elements_text(%s) AS old
WHERE seq = old.value::bigint AND place + 0 = 3

-- name: note_forgotten
INSERT INTO forgotten (type, results_upto) VALUES (%s, %s)
ON CONFLICT (type) DO UPDATE SET results_upto = greatest(forgotten.results_upto, excluded.results_upto)

-- name: prune_once
WITH gone AS MATERIALIZED (SELECT tenant, key FROM once WHERE expires_at <= %s LIMIT %s FOR UPDATE SKIP LOCKED)
DELETE FROM once USING gone WHERE once.tenant = gone.tenant AND once.key = gone.key

-- name: prune_workers
DELETE FROM worker WHERE beat_at <= %s

-- name: take_once
INSERT INTO once (tenant, key, expires_at) VALUES (%s, %s, %s)
ON CONFLICT (tenant, key) DO UPDATE SET expires_at = excluded.expires_at WHERE once.expires_at <= %s

-- name: set_paused
INSERT INTO queue (tenant, name, paused) VALUES (%s, %s, %s)
ON CONFLICT (tenant, name) DO UPDATE SET paused = excluded.paused WHERE queue.paused <> excluded.paused
