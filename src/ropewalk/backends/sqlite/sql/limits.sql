-- Fleet limits. The running jobs are counted whenever a number is needed. The state of a rate is one row for each
-- name that it is counted for.

-- name: all_limits
SELECT json_group_array(json_array(tenant, kind, name, concurrency, rate_count, rate_window_us, algorithm, declared))
FROM fleet_limit

-- name: put_limit
INSERT INTO fleet_limit (tenant, kind, name, concurrency, rate_count, rate_window_us, algorithm, declared)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, kind, name) DO UPDATE SET
    concurrency = excluded.concurrency, rate_count = excluded.rate_count, rate_window_us = excluded.rate_window_us,
    algorithm = excluded.algorithm, declared = excluded.declared
WHERE fleet_limit.declared = 1 OR excluded.declared = 0

-- name: remove_limit
DELETE FROM fleet_limit WHERE tenant = ? AND kind = ? AND name = ?

-- name: lock_limits
-- A writer is alone here: nobody else gives out jobs meanwhile.
SELECT json_group_array(json_array(tenant, kind, name, concurrency, rate_count, rate_window_us, algorithm, declared))
FROM json_each(?) AS wanted
CROSS JOIN fleet_limit ON tenant = json_extract(wanted.value, '$[0]') AND kind = json_extract(wanted.value, '$[1]')
    AND name = json_extract(wanted.value, '$[2]')

-- name: running_lanes
SELECT json_group_array(json_array(lane, jobs)) FROM (
    SELECT lane, count(*) AS jobs FROM job INDEXED BY job_lease WHERE stage = 2 GROUP BY lane
)

-- name: rates_of
SELECT json_group_array(json_array(tenant, kind, limit_name, name, json(state)))
FROM json_each(?) AS wanted
CROSS JOIN fleet_rate ON tenant = json_extract(wanted.value, '$[0]') AND kind = json_extract(wanted.value, '$[1]')
    AND limit_name = json_extract(wanted.value, '$[2]') AND name = json_extract(wanted.value, '$[3]')

-- name: put_rates
INSERT OR REPLACE INTO fleet_rate (tenant, kind, limit_name, name, idle_at, state)
VALUES (?, ?, ?, ?, ?, ?) /* each row */

-- name: forget_rates
DELETE FROM fleet_rate WHERE tenant = ? AND kind = ? AND limit_name = ?

-- name: prune_rates
DELETE FROM fleet_rate WHERE (tenant, kind, limit_name, name) IN (
    SELECT tenant, kind, limit_name, name FROM fleet_rate WHERE idle_at <= ? LIMIT ? + 0
)
