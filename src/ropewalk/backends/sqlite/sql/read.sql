-- name: attempts_of
SELECT json_group_array(json_object(
    'seq', seq, 'fence', fence, 'run', run, 'attempt', attempt, 'move', move, 'start_rev', start_rev, 'rev', rev,
    'started_at', started_at, 'ended_at', ended_at, 'owner', owner, 'error', json(error), 'next_run_at', next_run_at
)) FROM (SELECT * FROM attempt WHERE seq = ? ORDER BY rev)

-- name: events_of
SELECT json_group_array(json_object('seq', seq, 'rev', rev, 'kind', kind, 'at', at, 'reason', reason))
FROM (SELECT * FROM event WHERE seq = ? ORDER BY rev)

-- part: worker_card
json_object(
    'id', id, 'host', host, 'pid', pid, 'types', json(types), 'queues', json(queues), 'tenants', json(tenants),
    'concurrency', concurrency, 'started_at', started_at, 'beat_at', beat_at, 'lease_us', lease_us,
    'draining', json(iif(draining, 'true', 'false')), 'held', {held}
)

-- name: held
-- The card of a worker, and the jobs it holds. They are found among all running jobs (0.07 ms for a thousand of them): an
-- index by owner would make every claim and settlement 4 percent slower.
SELECT
    (SELECT json_group_array(/* see worker_card
    held = 0
    */) FROM worker WHERE id = ?1),
    /* see columns_without_bytes */
FROM job
WHERE stage = 2 AND owner = ?1

-- name: workers
SELECT json_group_array(/* see worker_card
held = coalesce(held, 0)
*/) FROM (
    SELECT * FROM worker
    LEFT JOIN (SELECT owner, count(*) AS held FROM job WHERE stage = 2 GROUP BY owner) ON owner = id
    ORDER BY worker.started_at, id
)

-- name: live_counts
-- Ready jobs by lane through the index; the others of the tenant by their own small partial indexes.
WITH live (queue, state, run_at) AS (
    SELECT lane.queue, 'scheduled', job.run_at
    FROM lane
    CROSS JOIN job ON job.stage = 1 AND job.sublane IN (2 * lane.id, 2 * lane.id + 1)
    WHERE lane.tenant = ?1
    UNION ALL
    SELECT queue, iif(run_at <= ?2, 'scheduled', iif(last_move = 'retry', 'retrying', 'delayed')), run_at
    FROM job WHERE stage = 0 AND unmet = 0 AND tenant = ?1
    UNION ALL
    SELECT queue, 'pending', run_at FROM job WHERE stage = 0 AND unmet > 0 AND tenant = ?1
    UNION ALL
    SELECT queue, 'running', run_at FROM job WHERE stage = 2 AND tenant = ?1
)
SELECT json_group_array(json_array(queue, state, jobs, oldest)) FROM (
    SELECT queue, state, count(*) AS jobs, min(run_at) AS oldest FROM live GROUP BY queue, state
)

-- name: backlog
-- Counts the ready jobs of each sublane that has some, up to a limit, and the jobs that are due but not ready yet.
WITH RECURSIVE occupied (sublane) AS (
    SELECT min(sublane) FROM job WHERE stage = 1
    UNION ALL
    SELECT (SELECT job.sublane FROM job WHERE stage = 1 AND job.sublane > occupied.sublane ORDER BY job.sublane LIMIT 1)
    FROM occupied
    WHERE occupied.sublane IS NOT NULL
),
counted (tenant, queue, type, found) AS MATERIALIZED (
    SELECT lane.tenant, lane.queue, lane.type, (
        SELECT json_array(count(*), min(run_at)) FROM (
            SELECT run_at FROM job WHERE stage = 1 AND job.sublane = occupied.sublane LIMIT ?2 + 0
        )
    )
    FROM occupied
    CROSS JOIN lane ON lane.id = occupied.sublane / 2
    UNION ALL
    SELECT tenant, queue, type, json_array(count(*), min(run_at)) FROM (
        SELECT tenant, queue, type, run_at FROM job
        WHERE stage = 0 AND unmet = 0 AND run_at <= ?1 ORDER BY run_at LIMIT ?2 + 0
    ) GROUP BY tenant, queue, type
)
SELECT json_group_array(json_array(tenant, queue, type, found ->> 0, found ->> 1)) FROM counted WHERE found ->> 0 > 0

-- name: lines_of
SELECT json_group_array(json_array(position, attempt, at, level, message, fields))
FROM (SELECT * FROM log WHERE seq = ? ORDER BY fence, position)

-- name: paused_queues
SELECT json_group_array(name) FROM queue WHERE tenant = ? AND paused = 1

-- name: ahead_of
SELECT count(*) FROM (
    SELECT 1
    FROM lane
    CROSS JOIN job ON job.stage = 1 AND job.sublane IN (2 * lane.id, 2 * lane.id + 1)
    WHERE lane.tenant = ?1 AND lane.queue = ?2 AND (job.prio_key, job.time_key, job.seq) < (?3, ?4, ?5)
    UNION ALL
    SELECT 1 FROM job
    WHERE stage = 0 AND unmet = 0 AND run_at <= ?6 AND tenant = ?1 AND queue = ?2
        AND (prio_key, time_key, seq) < (?3, ?4, ?5)
    LIMIT ?7 + 0
)

-- name: change_marks
SELECT data_version, (SELECT control FROM meta) FROM pragma_data_version

-- name: search_page
SELECT json_group_array(seq) FROM (SELECT seq FROM job WHERE {conditions} ORDER BY {order} LIMIT :limit + 0)

-- name: search_limit
:limit + 0

-- name: search_ended_by_type
stage = 3 AND status IN ('completed', 'failed', 'dead_letter', 'cancelled')

-- name: search_one_of
{column} IN (SELECT value FROM json_each(:{field}))

-- name: search_tag
EXISTS (SELECT 1 FROM json_each(job.tags) AS tag WHERE tag.key = :{name} AND tag.atom = :{value})

-- name: search_tag_carefully
EXISTS (
    SELECT 1 FROM json_each(iif(json_valid(job.tags), job.tags, '[]')) AS tag WHERE tag.key = :{name} AND tag.atom = :{value}
)

-- name: search_error
error ->> '$.{field}'

-- name: search_error_carefully
iif(json_valid(error), error ->> '$.{field}', NULL)

-- name: search_completed
-- Many among many: the plus keeps from sorting all of them to show a page.
+status = 'completed'
