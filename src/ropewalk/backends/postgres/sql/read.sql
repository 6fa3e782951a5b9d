-- name: attempts_of
SELECT coalesce(json_agg(json_build_object(
    'seq', seq, 'fence', fence, 'run', run, 'attempt', attempt, 'move', move, 'start_rev', start_rev, 'rev', rev,
    'started_at', started_at, 'ended_at', ended_at, 'owner', owner, 'error', error::json, 'next_run_at', next_run_at
) ORDER BY rev), '[]') FROM attempt WHERE seq = %s

-- name: events_of
SELECT coalesce(
    json_agg(json_build_object('seq', seq, 'rev', rev, 'kind', kind, 'at', at, 'reason', reason) ORDER BY rev), '[]'
) FROM event WHERE seq = %s

-- name: workers
SELECT coalesce(json_agg(json_build_object(
    'id', id, 'host', host, 'pid', pid, 'types', types::json, 'queues', queues::json, 'tenants', tenants::json,
    'concurrency', concurrency, 'started_at', started_at, 'beat_at', beat_at, 'lease_us', lease_us
) ORDER BY started_at, id), '[]') FROM worker

-- name: live_counts
-- Ready jobs by lane through the index; the others of the tenant by their own small partial indexes.
WITH live (queue, state, run_at) AS (
    SELECT found.*
    FROM (SELECT %s::text AS tenant, %s::bigint AS now) AS given
    CROSS JOIN LATERAL (
        SELECT lane.queue, 'scheduled', job.run_at
        FROM lane
        JOIN job ON job.place = 1 AND job.stream IN (2 * lane.id, 2 * lane.id + 1)
        WHERE lane.tenant = given.tenant
        UNION ALL
        SELECT
            queue,
            CASE WHEN run_at <= given.now THEN 'scheduled' WHEN last_move = 'retry' THEN 'retrying' ELSE 'delayed' END,
            run_at
        FROM job WHERE place = 0 AND unmet = 0 AND tenant = given.tenant
        UNION ALL
        SELECT queue, 'pending', run_at FROM job WHERE place = 0 AND unmet > 0 AND tenant = given.tenant
        UNION ALL
        SELECT queue, 'running', run_at FROM job WHERE place = 2 AND tenant = given.tenant
    ) AS found
)
SELECT coalesce(json_agg(json_build_array(queue, state, jobs, oldest)), '[]') FROM (
    SELECT queue, state, count(*) AS jobs, min(run_at) AS oldest FROM live GROUP BY queue, state
) AS counted

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
    JOIN job ON job.place = 1 AND job.stream IN (2 * lane.id, 2 * lane.id + 1)
        AND (job.prio_key, job.time_key, job.seq) < (given.prio_key, given.time_key, given.seq)
    UNION ALL
    SELECT 1
    FROM given
    JOIN job ON job.place = 0 AND job.unmet = 0 AND job.run_at <= given.now AND job.tenant = given.tenant
        AND job.queue = given.queue
        AND (job.prio_key, job.time_key, job.seq) < (given.prio_key, given.time_key, given.seq)
    LIMIT (SELECT most FROM given)
) AS before

-- name: marks
SELECT 0, control FROM meta

-- name: search_page
SELECT coalesce(json_agg(seq), '[]') FROM (SELECT seq FROM job WHERE {conditions} ORDER BY {order} LIMIT :limit) AS page

-- name: search_one_of
({column})::text IN (SELECT value FROM json_array_elements_text(:{field}))

-- name: search_tag
EXISTS (SELECT 1 FROM json_each_text(job.tags::json) AS tag WHERE tag.key = :{name} AND tag.value = :{value})

-- name: search_error
(error::json ->> '{field}')

-- name: search_completed
status = 'completed'
