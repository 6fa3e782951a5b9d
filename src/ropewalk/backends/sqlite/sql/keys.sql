-- Idempotency keys. A key may outlive the end of its job but not the job itself, so it always names a job that
-- exists.

-- name: find_key
SELECT job_id, run, input_hash, opened_at, closed_at, keep_us FROM key WHERE tenant = ? AND type = ? AND key = ?

-- name: put_keys
INSERT OR REPLACE INTO key (tenant, type, key, job_id, run, input_hash, opened_at, closed_at, keep_us)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) /* each row */

-- name: close_keys
WITH closed (tenant, type, key, job_id) AS (VALUES (?, ?, ?, ?) /* each row */)
UPDATE key SET closed_at = ?
FROM closed
WHERE key.tenant = closed.tenant AND key.type = closed.type AND key.key = closed.key AND key.job_id = closed.job_id

-- name: prune_keys
DELETE FROM key WHERE (tenant, type, key) IN (
    SELECT tenant, type, key FROM key WHERE closed_at IS NOT NULL AND opened_at + keep_us <= ? LIMIT ? + 0
)
