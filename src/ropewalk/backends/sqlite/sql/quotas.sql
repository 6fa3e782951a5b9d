-- Quotas of tenants. Waiting jobs are counted by lane, by indexes alone. What was submitted under a rate is one row
-- for each tenant.

-- name: all_quotas
SELECT json_group_array(json_array(tenant, pending, running, rate_count, rate_window_us, algorithm, payload_bytes))
FROM quota

-- name: put_quota
INSERT OR REPLACE INTO quota (
    tenant, pending, running, rate_count, rate_window_us, algorithm, payload_bytes
) VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: remove_quota
DELETE FROM quota WHERE tenant = ?

-- name: lock_quotas
-- A writer is alone here: nobody else submits meanwhile.
SELECT ?

-- name: waiting_of
-- Counts up to a limit. The lanes of all limit keys of a (tenant, queue, type) are one range of numbers, so that
-- none of them has to be looked up.
SELECT count(*) FROM (
    SELECT 1
    FROM lane
    CROSS JOIN job ON job.stage = 1 AND job.sublane >= 2 * lane.id AND job.sublane <= 2 * lane.id + 1
    WHERE lane.tenant = ?1 AND lane.limit_key = ''
    UNION ALL
    SELECT 1
    FROM lane
    CROSS JOIN job ON job.stage = 1 AND job.sublane >= lane.id << 41 AND job.sublane < (lane.id + 1) << 41
    WHERE lane.tenant = ?1 AND lane.limit_key = ''
    UNION ALL
    SELECT 1
    FROM lane
    CROSS JOIN job ON job.stage = 0 AND job.lane = lane.id
    WHERE lane.tenant = ?1 AND lane.limit_key = ''
    UNION ALL
    SELECT 1
    FROM lane
    CROSS JOIN job ON job.stage = 0 AND job.lane >= lane.id << 40 AND job.lane < (lane.id + 1) << 40
    WHERE lane.tenant = ?1 AND lane.limit_key = ''
    LIMIT ?2
)

-- name: quota_charges
SELECT json_group_array(json_array(tenant, json(charge)))
FROM json_each(?) AS wanted
CROSS JOIN quota_charge ON tenant = wanted.value

-- name: charge_quotas
INSERT OR REPLACE INTO quota_charge (tenant, charge) VALUES (?, ?) /* each row */
