-- Fleet limits. The running jobs are counted whenever a number is needed. The state of a rate is one row for each
-- name that it is counted for. A claim locks the rows of the limits first and counts in a later statement, which
-- sees what other claims have given out before.

-- name: all_limits
SELECT coalesce(
    json_agg(json_build_array(tenant, kind, name, concurrency, rate_count, rate_window_us, algorithm, declared)), '[]'
)
FROM fleet_limit

-- name: put_limit
INSERT INTO fleet_limit (tenant, kind, name, concurrency, rate_count, rate_window_us, algorithm, declared)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (tenant, kind, name) DO UPDATE SET
    concurrency = excluded.concurrency, rate_count = excluded.rate_count, rate_window_us = excluded.rate_window_us,
    algorithm = excluded.algorithm, declared = excluded.declared
WHERE fleet_limit.declared = 1 OR excluded.declared = 0

-- name: remove_limit
DELETE FROM fleet_limit WHERE tenant = %s AND kind = %s AND name = %s

-- name: lock_limits
WITH held AS MATERIALIZED (
    SELECT found.*
    FROM json_array_elements(%s) AS wanted
    CROSS JOIN LATERAL (
        SELECT * FROM fleet_limit
        WHERE tenant = wanted ->> 0 AND kind = wanted ->> 1 AND name = wanted ->> 2
        FOR UPDATE SKIP LOCKED
    ) AS found
)
SELECT coalesce(
    json_agg(json_build_array(tenant, kind, name, concurrency, rate_count, rate_window_us, algorithm, declared)), '[]'
)
FROM held

-- name: running_lanes
SELECT coalesce(json_agg(json_build_array(lane, jobs)), '[]') FROM (
    SELECT sublane / 2 AS lane, count(*) AS jobs FROM running GROUP BY 1
) AS counted

-- name: rates_of
SELECT coalesce(json_agg(json_build_array(tenant, kind, limit_name, name, state::json)), '[]')
FROM json_array_elements(%s) AS wanted
CROSS JOIN LATERAL (
    SELECT * FROM fleet_rate
    WHERE tenant = wanted ->> 0 AND kind = wanted ->> 1 AND limit_name = wanted ->> 2 AND name = wanted ->> 3
    OFFSET 0
) AS found

-- name: put_rates
INSERT INTO fleet_rate (tenant, kind, limit_name, name, idle_at, state)
SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::text[])
ON CONFLICT (tenant, kind, limit_name, name) DO UPDATE SET idle_at = excluded.idle_at, state = excluded.state

-- name: forget_rates
DELETE FROM fleet_rate WHERE tenant = %s AND kind = %s AND limit_name = %s

-- name: prune_rates
-- A rate that a claim is using is skipped, because the claim writes it anew.
WITH idle AS MATERIALIZED (
    SELECT tenant, kind, limit_name, name FROM fleet_rate WHERE idle_at <= %s LIMIT %s FOR UPDATE SKIP LOCKED
)
DELETE FROM fleet_rate USING idle
WHERE fleet_rate.tenant = idle.tenant AND fleet_rate.kind = idle.kind
    AND fleet_rate.limit_name = idle.limit_name AND fleet_rate.name = idle.name
