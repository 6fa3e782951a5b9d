-- Idempotency keys. A key outlives its job's end, not the job itself: it always names a job that is there.

-- name: find_key
SELECT job_id, run, input_hash, opened_at, closed_at, keep_us FROM key WHERE tenant = ? AND type = ? AND key = ?

-- name: put_key
INSERT OR REPLACE INTO key (tenant, type, key, job_id, run, input_hash, opened_at, closed_at, keep_us)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: close_key
UPDATE key SET closed_at = ? WHERE tenant = ? AND type = ? AND key = ? AND job_id = ?

-- name: prune_keys
DELETE FROM key WHERE (tenant, type, key) IN (
    SELECT tenant, type, key FROM key WHERE closed_at IS NOT NULL AND opened_at + keep_us <= ? LIMIT ? + 0
)
