-- name: take_seqs
SELECT json_agg(nextval('job_seq')) FROM generate_series(1, %s)

-- name: insert_lane
INSERT INTO lane (tenant, queue, type) VALUES (%s, %s, %s) ON CONFLICT (tenant, queue, type) DO NOTHING

-- name: lane_id
SELECT id FROM lane WHERE tenant = %s AND queue = %s AND type = %s

-- name: all_lanes
SELECT coalesce(json_agg(json_build_array(id, tenant, queue, type)), '[]') FROM lane

-- name: seq_of_id
SELECT seq FROM submitted WHERE id = %s AND tenant = %s

-- name: is_paused
SELECT 1 FROM queue WHERE tenant = %s AND name = %s AND paused = 1

-- name: epoch
SELECT epoch FROM meta

-- name: lease_new_job
UPDATE standing SET
    place = 2, status = %s, last_move = %s, rev = %s, updated_at = %s, attempt = %s, fence = %s, owner = %s,
    ticket = %s, lease_expires_at = %s, start_rev = %s, started_at = %s
WHERE place = 1 AND seq = %s
