-- name: expired_leases
SELECT json_group_array(seq) FROM (
    SELECT seq FROM job WHERE stage = 2 AND lease_expires_at <= ? ORDER BY lease_expires_at, seq LIMIT ? + 0
)

-- name: earliest_expiry
SELECT min(lease_expires_at) FROM job WHERE stage = 2 AND lease_expires_at > ?

-- name: started_tickets
SELECT json_group_object(id, json_array(started_upto, json(unstarted), json(unanswered))) FROM worker

-- name: past_deadline
SELECT json_group_array(seq) FROM (
    SELECT seq FROM job
    WHERE deadline IS NOT NULL AND deadline <= ? AND stage < 2
    ORDER BY deadline, seq
    LIMIT ? + 0
)

-- name: waits_ahead
-- Returns jobs with relative waits that began after this instant, and so by a clock that was set back since
-- (domain/jobs/clock_set_back.py; 65536 is AT_FIXED_TIME).
SELECT json_group_array(seq) FROM (
    SELECT seq FROM job
    WHERE stage = 0 AND (wake_at IS NOT NULL OR (unmet = 0 AND flags & 65536 = 0)) AND updated_at > ?
    ORDER BY updated_at, seq
    LIMIT ? + 0
)

-- name: workers_ahead
SELECT json_group_array(json_array(id, beat_at)) FROM worker WHERE beat_at > ?

-- name: bring_leases_nearer
WITH given (owner, ahead_us, now) AS (VALUES (?, ?, ?))
UPDATE job SET lease_expires_at = lease_expires_at - given.ahead_us
FROM given
WHERE job.stage = 2 AND job.owner = given.owner AND job.lease_expires_at > given.now + given.ahead_us

-- name: bring_beat_nearer
UPDATE worker SET beat_at = ? WHERE id = ?

-- name: types
SELECT json_group_array(type) FROM (SELECT DISTINCT type FROM lane)

-- part: is_needed
-- Whether a finished job owns an open scope, or a job that has not ended depends on it, or on the chain of which it
-- is a later member.
EXISTS (SELECT 1 FROM scope WHERE scope.id = job.seq AND closed_at IS NULL)
OR EXISTS (
    SELECT 1 FROM edge CROSS JOIN job AS child ON child.seq = edge.seq
    WHERE edge.parent = job.seq AND child.stage < 3
)
OR (job.chain_index > 0 AND EXISTS (
    SELECT 1 FROM edge CROSS JOIN job AS child ON child.seq = edge.seq
    WHERE edge.parent = job.scope_id AND edge.parent_kind = 'chain' AND child.stage < 3
))

-- name: past_retention
-- A key keeps its job while its window lasts, because a repeated submission must find the job. Jobs that other jobs
-- need stay, too; most jobs have no flag that makes it necessary to check that.
SELECT json_group_array(seq) FROM (
    SELECT seq FROM job
    WHERE stage = 3 AND status = ?1 AND type = ?2 AND finished_at <= ?3 AND NOT EXISTS (
        SELECT 1 FROM key
        WHERE key.tenant = job.tenant AND key.type = job.type AND key.key = job.idempotency_key
            AND key.job_id = job.id AND key.opened_at + key.keep_us > ?4
    ) AND NOT (flags & ?5 <> 0 AND (/* see is_needed */))
    ORDER BY finished_at
    LIMIT ?6 + 0
)

-- name: delete_keys_of
DELETE FROM key WHERE (tenant, type, key, job_id) IN (
    SELECT job.tenant, job.type, job.idempotency_key, job.id
    FROM json_each(?) AS gone
    CROSS JOIN job ON job.seq = gone.value
    WHERE job.idempotency_key IS NOT NULL
)

-- name: delete_attempts
DELETE FROM attempt WHERE seq IN (SELECT value FROM json_each(?))

-- name: delete_events
DELETE FROM event WHERE seq IN (SELECT value FROM json_each(?))

-- name: delete_lines
DELETE FROM log WHERE seq IN (SELECT value FROM json_each(?))

-- name: delete_jobs
DELETE FROM job WHERE seq IN (SELECT value FROM json_each(?)) AND stage = 3

-- name: results_upto
SELECT coalesce((SELECT results_upto FROM dropped_results WHERE type = ?), 0)

-- name: old_results
SELECT json_group_array(json_array(seq, finished_at)) FROM (
    SELECT seq, finished_at FROM job
    WHERE stage = 3 AND status = 'completed' AND type = ? AND finished_at BETWEEN ? AND ? AND result IS NOT NULL
        AND flags & 769 = 0
    ORDER BY finished_at
    LIMIT ? + 0
)

-- name: old_shared_results
-- Returns jobs that others may need (769 is MAY_BE_NEEDED) and whose results are old. They have an index of their
-- own, because they are read again and again until nobody needs them.
SELECT json_group_array(seq) FROM (
    SELECT seq FROM job INDEXED BY job_shared_result
    WHERE stage = 3 AND status = 'completed' AND flags & 769 <> 0 AND result IS NOT NULL AND type = ? AND finished_at <= ?
        AND NOT (/* see is_needed */)
    ORDER BY finished_at
    LIMIT ? + 0
)

-- name: forget_results
UPDATE job SET result = NULL, flags = flags | ? WHERE seq IN (SELECT value FROM json_each(?)) AND stage = 3

-- name: note_forgotten
INSERT OR REPLACE INTO dropped_results (type, results_upto) VALUES (?, ?)

-- name: prune_once
DELETE FROM once_key WHERE (tenant, key) IN (SELECT tenant, key FROM once_key WHERE expires_at <= ? LIMIT ? + 0)

-- name: prune_workers
DELETE FROM worker WHERE beat_at <= ?

-- name: take_once
-- The caller that took the key first, and asks again under the same id, gets the same answer; it does not hold the
-- key for longer.
INSERT INTO once_key (tenant, key, taken_by, expires_at) VALUES (?, ?, ?, ?)
ON CONFLICT (tenant, key) DO UPDATE SET
    expires_at = CASE WHEN once_key.expires_at <= ? THEN excluded.expires_at ELSE once_key.expires_at END,
    taken_by = excluded.taken_by
WHERE once_key.expires_at <= ? OR once_key.taken_by = excluded.taken_by

-- name: is_taken_once
SELECT 1 FROM once_key WHERE tenant = ? AND key = ? AND expires_at > ?

-- name: set_paused
INSERT INTO queue (tenant, name, paused) VALUES (?, ?, ?)
ON CONFLICT (tenant, name) DO UPDATE SET paused = excluded.paused WHERE queue.paused <> excluded.paused
