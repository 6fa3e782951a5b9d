-- name: take_seqs
UPDATE meta SET last_seq = last_seq + ? RETURNING last_seq

-- name: insert_lane
INSERT OR IGNORE INTO lane (tenant, queue, type) VALUES (?, ?, ?)

-- name: lane_id
SELECT id FROM lane WHERE tenant = ? AND queue = ? AND type = ?

-- name: all_lanes
SELECT json_group_array(json_array(id, tenant, queue, type)) FROM lane

-- name: seq_of_id
SELECT seq FROM job WHERE id = ? AND tenant = ?

-- name: is_paused
SELECT 1 FROM queue WHERE tenant = ? AND name = ? AND paused = 1

-- name: epoch
SELECT epoch FROM meta

-- name: lease_new_job
UPDATE job SET
    place = 2, status = ?, last_move = ?, rev = ?, updated_at = ?, attempt = ?, fence = ?, owner = ?, ticket = ?,
    lease_expires_at = ?, start_rev = ?, started_at = ?
WHERE seq = ? AND place = 1
