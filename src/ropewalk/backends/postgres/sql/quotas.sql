-- Quotas of tenants. What waits is counted from the jobs, by lane, in indexes alone. Whoever lets jobs of a tenant in holds
-- its row of `quota_charge` first, and counts in a later statement: that one sees what was let in before.

-- name: all_quotas
SELECT coalesce(
    json_agg(json_build_array(tenant, pending, running, rate_count, rate_window_us, algorithm, payload_bytes)), '[]'
)
FROM quota

-- name: put_quota
INSERT INTO quota (tenant, pending, running, rate_count, rate_window_us, algorithm, payload_bytes)
VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (tenant) DO UPDATE SET
    pending = excluded.pending, running = excluded.running, rate_count = excluded.rate_count,
    rate_window_us = excluded.rate_window_us, algorithm = excluded.algorithm, payload_bytes = excluded.payload_bytes

-- name: remove_quota
DELETE FROM quota WHERE tenant = %s

-- name: lock_quotas
-- In order of name, so that two who want several never wait for each other. A row that was ever there stays.
INSERT INTO quota_charge (tenant)
SELECT tenant FROM json_array_elements_text(%s) AS wanted (tenant) ORDER BY tenant COLLATE "C"
ON CONFLICT (tenant) DO NOTHING
-- then
SELECT count(*) FROM (
    SELECT 1 FROM quota_charge
    WHERE tenant = ANY (ARRAY(SELECT json_array_elements_text(%s)))
    ORDER BY tenant
    FOR UPDATE
) AS held

-- name: waiting_of
-- Up to so many of each (queue, type) and stage. The lanes of all its limit keys are one range: none of them is looked up.
WITH given AS (SELECT %s::text AS tenant, %s::bigint AS most)
SELECT coalesce(sum(
    (SELECT count(*) FROM (
        SELECT FROM ready WHERE sublane >= 2 * lane.id AND sublane <= 2 * lane.id + 1 LIMIT given.most
    ) AS counted)
    + (SELECT count(*) FROM (
        SELECT FROM ready WHERE sublane >= lane.id << 41 AND sublane < (lane.id + 1) << 41 LIMIT given.most
    ) AS counted)
    + (SELECT count(*) FROM (
        SELECT FROM waiting WHERE sublane >= 2 * lane.id AND sublane <= 2 * lane.id + 1 LIMIT given.most
    ) AS counted)
    + (SELECT count(*) FROM (
        SELECT FROM waiting WHERE sublane >= lane.id << 41 AND sublane < (lane.id + 1) << 41 LIMIT given.most
    ) AS counted)
), 0)::bigint
FROM given
JOIN lane ON lane.tenant = given.tenant AND lane.limit_key = ''

-- name: quota_charges
SELECT coalesce(json_agg(json_build_array(tenant, charge::json)), '[]') FROM quota_charge
WHERE tenant = ANY (ARRAY(SELECT json_array_elements_text(%s))) AND charge IS NOT NULL

-- name: charge_quotas
INSERT INTO quota_charge (tenant, charge)
SELECT * FROM unnest(%s::text[], %s::text[])
ON CONFLICT (tenant) DO UPDATE SET charge = excluded.charge
