-- What an examination reads, for all tenants. The table of each stage contains only the jobs of this stage.

-- name: all_paused
SELECT coalesce(json_agg(json_build_array(tenant, name)), '[]') FROM queue WHERE paused = 1

-- name: leases_over
SELECT count(*), min(lease_expires_at) FROM running WHERE lease_expires_at <= %s

-- name: newer_records
SELECT count(*) FROM job_by_stage WHERE stage < 3 AND format > %s

-- name: dead_letters
SELECT coalesce(json_object_agg(type, jobs), '{}') FROM (
    SELECT type, sum(jobs)::bigint AS jobs
    FROM (SELECT sublane / 2 AS id, count(*) AS jobs FROM finished WHERE status = 'dead_letter' GROUP BY sublane / 2) AS dead
    JOIN lane USING (id)
    GROUP BY type
) AS named

-- name: jobs_set_aside
SELECT count(*) FROM finished WHERE status = 'dead_letter' AND last_move = 'set_aside'
