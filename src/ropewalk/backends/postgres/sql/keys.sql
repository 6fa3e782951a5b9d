-- Idempotency keys. A key outlives its job's end, not the job itself: it always names a job that is there.

-- name: find_key
SELECT job_id, run, input_hash, opened_at, closed_at, keep_us FROM hold_key(%s, %s, %s)

-- name: put_keys
-- Those who ask for a key take turns; the end of its job does not. So it may have been closed since it was read.
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
WITH closed (tenant, type, key, job_id) AS (SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[]))
UPDATE key SET closed_at = %s
FROM closed
WHERE key.tenant = closed.tenant AND key.type = closed.type AND key.key = closed.key AND key.job_id = closed.job_id

-- name: prune_keys
WITH gone AS MATERIALIZED (
    SELECT tenant, type, key FROM key
    WHERE closed_at IS NOT NULL AND opened_at + keep_us <= %s
    LIMIT %s
    FOR UPDATE SKIP LOCKED
)
DELETE FROM key USING gone WHERE key.tenant = gone.tenant AND key.type = gone.type AND key.key = gone.key
