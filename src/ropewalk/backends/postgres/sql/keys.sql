-- Idempotency keys. A key may outlive the end of its job but not the job itself, so it always names a job that
-- exists.

-- name: find_key
-- Locks the name of a key until the end of the transaction, whether the key exists or not, and then reads the key.
-- Its row is only kept from being deleted: the end of its job may close it meanwhile.
SELECT pg_advisory_xact_lock(hashtextextended(
    jsonb_build_array(current_schema(), %s::text, %s::text, %s::text)::text, 0
))
-- then
SELECT job_id, run, input_hash, opened_at, closed_at, keep_us FROM key
WHERE tenant = %s AND type = %s AND key = %s
FOR KEY SHARE

-- name: find_key_if_free
-- Reads a key like find_key, but without waiting. The first statement returns whether the lock was free. The second
-- one is separate because a statement sees only what was committed before it began.
SELECT pg_try_advisory_xact_lock(hashtextextended(
    jsonb_build_array(current_schema(), %s::text, %s::text, %s::text)::text, 0
))
-- then
SELECT job_id, run, input_hash, opened_at, closed_at, keep_us FROM key
WHERE tenant = %s AND type = %s AND key = %s
FOR KEY SHARE

-- name: put_keys
-- Submissions with the same key exclude one another, but the end of its job does not wait for them. So the key may
-- have been closed since it was read.
INSERT INTO key (tenant, type, key, job_id, run, input_hash, opened_at, closed_at, keep_us)
SELECT * FROM unnest(
    %s::text[], %s::text[], %s::text[], %s::text[], %s::integer[], %s::bytea[], %s::bigint[], %s::bigint[], %s::bigint[]
)
ON CONFLICT (tenant, type, key) DO UPDATE SET
    job_id = excluded.job_id, run = excluded.run, input_hash = excluded.input_hash, opened_at = excluded.opened_at,
    closed_at = CASE
        WHEN key.job_id = excluded.job_id AND key.run = excluded.run THEN coalesce(key.closed_at, excluded.closed_at)
        ELSE excluded.closed_at
    END,
    keep_us = excluded.keep_us

-- name: close_keys
WITH closed (tenant, type, key, job_id) AS (SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[])),
found AS MATERIALIZED (
    SELECT held.ctid
    FROM closed
    CROSS JOIN LATERAL (
        SELECT key.ctid FROM key
        WHERE key.tenant = closed.tenant AND key.type = closed.type AND key.key = closed.key
            AND key.job_id = closed.job_id
        FOR NO KEY UPDATE
    ) AS held
)
UPDATE key SET closed_at = %s WHERE ctid = ANY (ARRAY(SELECT ctid FROM found))

-- name: prune_keys
WITH gone AS MATERIALIZED (
    SELECT ctid FROM key
    WHERE closed_at IS NOT NULL AND opened_at + keep_us <= %s
    LIMIT %s
    FOR UPDATE SKIP LOCKED
)
DELETE FROM key WHERE ctid = ANY (ARRAY(SELECT ctid FROM gone))
