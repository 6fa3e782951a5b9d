-- What an examination reads, for all tenants. Every statement uses the partial index of its stage.

-- name: all_paused
SELECT json_group_array(json_array(tenant, name)) FROM queue WHERE paused = 1

-- name: leases_over
SELECT count(*), min(lease_expires_at) FROM job WHERE stage = 2 AND lease_expires_at <= ?

-- name: newer_records
SELECT count(*) FROM (
    SELECT format FROM job WHERE stage = 0 AND unmet = 0
    UNION ALL
    SELECT format FROM job WHERE stage = 0 AND unmet > 0
    UNION ALL
    SELECT format FROM job WHERE stage = 1
    UNION ALL
    SELECT format FROM job WHERE stage = 2
) WHERE format > ?

-- name: dead_letters
SELECT json_group_object(type, jobs) FROM (
    SELECT type, count(*) AS jobs FROM job WHERE stage = 3 AND status = 'dead_letter' GROUP BY type
)

-- name: jobs_set_aside
SELECT count(*) FROM job WHERE stage = 3 AND status = 'dead_letter' AND last_move = 'set_aside'
