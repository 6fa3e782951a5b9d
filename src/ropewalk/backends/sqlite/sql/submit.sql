-- name: take_numbers
-- Also returns `control`, which shows whether the quotas that the caller knows are still valid. If last_seq is no
-- number, which SQLite would treat as 0, no row is changed.
UPDATE meta SET last_seq = last_seq + ? WHERE typeof(last_seq) = 'integer' RETURNING last_seq, control

-- name: insert_lanes
-- The lanes of limit keys get numbers behind that of the lane without a key (LaneBook), which exists already.
-- row_number leaves gaps for lanes that exist.
WITH given (tenant, queue, type, limit_key) AS (VALUES (?, ?, ?, ?) /* each row */)
INSERT OR IGNORE INTO lane (id, tenant, queue, type, limit_key)
SELECT
    row_number() OVER () + iif(
        given.limit_key = '',
        (SELECT coalesce(max(id), 0) FROM lane WHERE id < 1099511627776),
        (
            SELECT coalesce(max(below.id), above.id * 1099511627776) FROM lane AS below
            WHERE below.id > above.id * 1099511627776 AND below.id < (above.id + 1) * 1099511627776
        )
    ),
    given.tenant, given.queue, given.type, given.limit_key
FROM given
LEFT JOIN lane AS above ON above.tenant = given.tenant AND above.queue = given.queue AND above.type = given.type
    AND above.limit_key = ''

-- name: lane_ids
SELECT json_group_array(json_array(lane.id, tenant, queue, lane.type, limit_key))
FROM json_each(?) AS wanted
CROSS JOIN lane ON tenant = json_extract(wanted.value, '$[0]') AND queue = json_extract(wanted.value, '$[1]')
    AND lane.type = json_extract(wanted.value, '$[2]') AND limit_key = json_extract(wanted.value, '$[3]')

-- name: lane_names
SELECT json_group_array(json_array(lane.id, tenant, queue, lane.type, limit_key))
FROM json_each(?) AS wanted
CROSS JOIN lane ON lane.id = wanted.value

-- name: seq_of_id
SELECT seq FROM job WHERE id = ? AND tenant = ?

-- name: is_paused
SELECT 1 FROM queue WHERE tenant = ? AND name = ? AND paused = 1

-- name: epoch
SELECT epoch, control FROM meta
