-- Quotas of tenants. Waiting jobs are counted by lane, by indexes alone. A submission locks the tenant's row of
-- `quota_charge` first and counts in a later statement, which sees what other submissions have written before.

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
-- The rows are locked in the order of their names, so that two submissions for several tenants cannot deadlock. A
-- row stays once it is there.
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
-- Counts up to a limit for each (queue, type) and stage. The lanes of all limit keys of a (tenant, queue, type) are
-- one range of numbers, so that none of them has to be looked up.
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
