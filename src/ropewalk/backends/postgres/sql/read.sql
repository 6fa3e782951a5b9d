-- name: attempts_of
SELECT coalesce(json_agg(json_build_object(
    'seq', seq, 'fence', fence, 'run', run, 'attempt', attempt, 'move', move, 'start_rev', start_rev, 'rev', rev,
    'started_at', started_at, 'ended_at', ended_at, 'owner', owner, 'error', error::json, 'next_run_at', next_run_at
) ORDER BY rev), '[]') FROM attempt WHERE seq = %s

-- name: events_of
SELECT coalesce(
    json_agg(json_build_object('seq', seq, 'rev', rev, 'kind', kind, 'at', at, 'reason', reason) ORDER BY rev), '[]'
) FROM event WHERE seq = %s

-- part: worker_card
json_build_object(
    'id', id, 'host', host, 'pid', pid, 'types', types::json, 'queues', queues::json, 'tenants', tenants::json,
    'concurrency', concurrency, 'started_at', started_at, 'beat_at', beat_at, 'lease_us', lease_us,
    'draining', draining = 1, 'held', {held}
)

-- name: workers
SELECT coalesce(json_agg(/* see worker_card
held = coalesce(held, 0)
*/ ORDER BY started_at, id), '[]')
FROM worker
LEFT JOIN (SELECT owner, count(*) AS held FROM running GROUP BY owner) AS busy ON busy.owner = worker.id

-- name: held
-- The card of a worker, and the jobs it holds. Only those of remote workers, whose ids have a dot, are in the index: of
-- local ones nobody asks this, and their claims do not pay for it.
SELECT
    (SELECT coalesce(json_agg(/* see worker_card
    held = 0
    */), '[]') FROM worker WHERE id = %(1)s),
    /* see columns_without_bytes */
FROM (
    SELECT * FROM running WHERE owner = %(1)s AND position('.' IN owner) > 0
    UNION ALL
    SELECT * FROM running WHERE owner = %(1)s AND position('.' IN %(1)s) = 0
) AS head
JOIN LATERAL (SELECT * FROM submitted WHERE submitted.seq = head.seq OFFSET 0) AS body USING (seq)

-- name: live_counts
-- Counts by lane, so that no job has to be looked up: the table of each stage contains only the jobs of this stage.
WITH live (queue, state, run_at) AS (
    SELECT
        lane.queue,
        CASE
            WHEN stage = 2 THEN 'running'
            WHEN unmet > 0 THEN 'pending'
            WHEN run_at <= given.now THEN 'scheduled'
            WHEN last_move = 'retry' THEN 'retrying'
            ELSE 'delayed'
        END,
        run_at
    FROM (SELECT %s::text AS tenant, %s::bigint AS now) AS given
    JOIN lane ON lane.tenant = given.tenant
    JOIN job_by_stage ON job_by_stage.stage < 3 AND job_by_stage.sublane / 2 = lane.id
)
SELECT coalesce(json_agg(json_build_array(queue, state, jobs, oldest)), '[]') FROM (
    SELECT queue, state, count(*) AS jobs, min(run_at) AS oldest FROM live GROUP BY queue, state
) AS counted

-- name: backlog
-- Counts the ready jobs of each sublane that has some, up to a limit, and the jobs that are due but not ready yet.
WITH RECURSIVE given AS (SELECT %s::bigint AS now, %s::bigint AS most),
occupied (sublane) AS (
    (SELECT sublane FROM ready ORDER BY sublane LIMIT 1)
    UNION ALL
    SELECT (SELECT ready.sublane FROM ready WHERE ready.sublane > occupied.sublane ORDER BY ready.sublane LIMIT 1)
    FROM occupied
    WHERE occupied.sublane IS NOT NULL
)
SELECT coalesce(json_agg(json_build_array(tenant, queue, type, jobs, oldest)), '[]') FROM (
    SELECT lane.tenant, lane.queue, lane.type, found.jobs, found.oldest
    FROM given
    CROSS JOIN occupied
    JOIN lane ON lane.id = occupied.sublane / 2
    CROSS JOIN LATERAL (
        SELECT count(*) AS jobs, min(run_at) AS oldest FROM (
            SELECT run_at FROM ready WHERE ready.sublane = occupied.sublane LIMIT given.most
        ) AS counted
    ) AS found
    UNION ALL
    SELECT lane.tenant, lane.queue, lane.type, count(*), min(due.run_at)
    FROM given
    CROSS JOIN LATERAL (
        SELECT sublane, run_at FROM waiting WHERE unmet = 0 AND run_at <= given.now ORDER BY run_at LIMIT given.most
    ) AS due
    JOIN lane ON lane.id = due.sublane / 2
    GROUP BY lane.tenant, lane.queue, lane.type
) AS counted
WHERE jobs > 0

-- name: lines_of
SELECT coalesce(
    json_agg(json_build_array(position, attempt, at, level, message, fields) ORDER BY fence, position), '[]'
) FROM log WHERE seq = %s

-- name: paused_queues
SELECT coalesce(json_agg(name), '[]') FROM queue WHERE tenant = %s AND paused = 1

-- name: ahead_of
WITH given AS (
    SELECT
        %s::text AS tenant, %s::text AS queue, %s::bigint AS prio_key, %s::bigint AS time_key, %s::bigint AS seq,
        %s::bigint AS now, %s::bigint AS most
)
SELECT count(*) FROM (
    SELECT 1
    FROM given
    JOIN lane ON lane.tenant = given.tenant AND lane.queue = given.queue
    JOIN ready ON ready.sublane IN (2 * lane.id, 2 * lane.id + 1)
        AND (ready.prio_key, ready.time_key, ready.seq) < (given.prio_key, given.time_key, given.seq)
    UNION ALL
    SELECT 1
    FROM given
    JOIN waiting ON waiting.unmet = 0 AND waiting.run_at <= given.now
        AND (waiting.prio_key, waiting.time_key, waiting.seq) < (given.prio_key, given.time_key, given.seq)
    JOIN lane ON lane.id = waiting.sublane / 2 AND lane.tenant = given.tenant AND lane.queue = given.queue
    LIMIT (SELECT most FROM given)
) AS before

-- name: change_marks
SELECT 0, control FROM meta

-- name: search_page
SELECT coalesce(json_agg(seq), '[]') FROM (SELECT seq FROM job WHERE {conditions} ORDER BY {order} LIMIT :limit) AS page

-- name: search_limit
:limit

-- name: search_one_of
({column})::text IN (SELECT value FROM json_array_elements_text(:{field}))

-- name: search_tag
EXISTS (SELECT 1 FROM json_each_text(job.tags::json) AS tag WHERE tag.key = :{name} AND tag.value = :{value})

-- name: search_tag_carefully
EXISTS (
    SELECT 1
    FROM (
        SELECT readable_json(job.tags) AS tags WHERE json_typeof(readable_json(job.tags)) = 'object' OFFSET 0
    ) AS readable
    CROSS JOIN LATERAL json_each_text(readable.tags) AS tag
    WHERE tag.key = :{name} AND tag.value = :{value}
)

-- name: search_error
(error::json ->> '{field}')

-- name: search_completed
status = 'completed'
