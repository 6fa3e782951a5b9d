-- name: take_numbers
-- Also returns `control`, which shows whether the quotas that the caller knows are still valid.
SELECT json_agg(nextval('job_seq')), (SELECT control FROM meta) FROM generate_series(1, %s)

-- name: next_seq
nextval('job_seq')

-- name: insert_lanes
-- The lanes of limit keys get numbers behind that of the lane without a key (LaneBook), which exists already.
INSERT INTO lane (id, tenant, queue, type, limit_key)
SELECT
    CASE given.limit_key
        WHEN '' THEN nextval('lane_number') ELSE above.id * 1099511627776 + nextval('keyed_lane_number')
    END,
    given.tenant, given.queue, given.type, given.limit_key
FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[]) AS given (tenant, queue, type, limit_key)
LEFT JOIN LATERAL (
    SELECT id FROM lane
    WHERE tenant = given.tenant AND queue = given.queue AND type = given.type AND limit_key = ''
    OFFSET 0
) AS above ON TRUE
ON CONFLICT (tenant, queue, type, limit_key) DO NOTHING

-- name: lane_ids
SELECT coalesce(json_agg(json_build_array(id, tenant, queue, type, limit_key)), '[]')
FROM json_array_elements(%s) AS wanted
CROSS JOIN LATERAL (
    SELECT * FROM lane
    WHERE tenant = wanted ->> 0 AND queue = wanted ->> 1 AND type = wanted ->> 2 AND limit_key = wanted ->> 3
    OFFSET 0
) AS found

-- name: lane_names
SELECT coalesce(json_agg(json_build_array(id, tenant, queue, type, limit_key)), '[]') FROM lane
WHERE id = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))

-- name: seq_of_id
SELECT seq FROM submitted WHERE id = %s AND tenant = %s

-- name: is_paused
SELECT 1 FROM queue WHERE tenant = %s AND name = %s AND paused = 1

-- name: epoch
SELECT epoch, control FROM meta
