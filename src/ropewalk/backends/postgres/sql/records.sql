-- Reading and writing whole records.
-- One row of JSON instead of a row a job: decoding is msgspec's. What most jobs do not have comes apart, only for those
-- that do; the large byte columns (JSON has no bytes) travel beside it in one piece each.
-- Where somebody is about to write, every lock is taken in order of number.

-- name: load_jobs
WITH loaded AS MATERIALIZED (
    SELECT job.*, wanted.at AS wanted_at
    FROM json_array_elements_text(%s) WITH ORDINALITY AS wanted (value, at)
    JOIN job ON job.seq = wanted.value::bigint
    ORDER BY job.seq
    FOR UPDATE OF job
)
SELECT
    -- In the order of JobRecord's fields.
    coalesce(json_agg(json_build_array(
        seq, id, tenant, type, queue, '', status, last_move, priority, prio_key, time_key, created_at,
        run_at, updated_at, flags, run, rev, attempt, max_attempts, crashes, max_crashes, fence, owner, ticket,
        lease_expires_at, start_rev, started_at, finished_at, format
    )), '[]'),
    coalesce(json_object_agg(seq, json_build_object(
        'timeout_us', timeout_us, 'backoff', backoff::json, 'lease_us', lease_us, 'deadline', deadline,
        'idempotency_key', idempotency_key, 'correlation_id', correlation_id, 'tags', coalesce(tags, '{}')::json,
        'workflow_id', workflow_id, 'workflow_type', workflow_type, 'chain_id', chain_id, 'chain_index', chain_index,
        'unmet', unmet, 'depth', depth, 'gate', gate::json, 'awaits', awaits, 'wake_at', wake_at,
        'on_failure', on_failure::json, 'origin', origin::json,
        'callback_url', callback_url, 'fairness', fairness, 'limit_key', limit_key, 'trace', trace,
        'progress', progress::json, 'error', error::json, 'cancel', cancel::json,
        'checkpoint_bytes', length(checkpoint), 'result_bytes', length(result)
    )) FILTER (WHERE unmet > 0 OR depth > 0 OR num_nonnulls(
        timeout_us, backoff, lease_us, deadline, idempotency_key, correlation_id, tags, workflow_id, workflow_type,
        chain_id, chain_index, gate, awaits, wake_at, on_failure, origin, callback_url, fairness, limit_key, trace,
        progress, error, cancel, checkpoint, result
    ) > 0), '{}'),
    coalesce(json_object_agg(seq, json_build_array(scope_id, group_id, parent_id, spawn_key))
        FILTER (WHERE num_nonnulls(scope_id, group_id, parent_id, spawn_key) > 0), '{}'),
    coalesce(json_agg(length(input)), '[]'),
    string_agg(input, ''),
    string_agg(checkpoint, ''),
    string_agg(result, '')
FROM (SELECT * FROM loaded ORDER BY wanted_at) AS job

-- name: save_jobs
WITH changed (
    seq, fence, place, status, last_move, priority, prio_key, time_key, run_at, updated_at, flags, run, rev, attempt,
    crashes, owner, lease_expires_at, start_rev, started_at, finished_at, deadline, chain_id, chain_index, unmet,
    awaits, wake_at, gate, progress, error, cancel, input, checkpoint, result
) AS (
    SELECT * FROM unnest(
        %s::bigint[], %s::bigint[], %s::smallint[], %s::text[], %s::text[], %s::integer[], %s::bigint[], %s::bigint[],
        %s::bigint[], %s::bigint[], %s::integer[], %s::integer[], %s::integer[], %s::bigint[],
        %s::bigint[], %s::text[], %s::bigint[], %s::integer[], %s::bigint[], %s::bigint[], %s::bigint[], %s::text[],
        %s::integer[], %s::integer[],
        %s::text[], %s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[], %s::bytea[], %s::bytea[], %s::bytea[]
    )
)
UPDATE job SET
    place = changed.place, status = changed.status, last_move = changed.last_move, priority = changed.priority,
    prio_key = changed.prio_key, time_key = changed.time_key, run_at = changed.run_at,
    updated_at = changed.updated_at, flags = changed.flags, run = changed.run, rev = changed.rev,
    attempt = changed.attempt, crashes = changed.crashes, owner = changed.owner,
    lease_expires_at = changed.lease_expires_at, start_rev = changed.start_rev, started_at = changed.started_at,
    finished_at = changed.finished_at, deadline = changed.deadline, chain_id = changed.chain_id,
    chain_index = changed.chain_index, unmet = changed.unmet, awaits = changed.awaits, wake_at = changed.wake_at,
    gate = changed.gate, progress = changed.progress, error = changed.error, cancel = changed.cancel,
    input = changed.input, checkpoint = changed.checkpoint, result = changed.result
FROM changed
WHERE job.seq = changed.seq AND job.fence = changed.fence

-- name: insert_attempts
INSERT INTO attempt (
    seq, fence, run, attempt, move, start_rev, rev, started_at, ended_at, owner, error, next_run_at
)
SELECT * FROM unnest(
    %s::bigint[], %s::bigint[], %s::integer[], %s::bigint[], %s::text[], %s::integer[], %s::integer[], %s::bigint[],
    %s::bigint[], %s::text[], %s::text[], %s::bigint[]
)

-- name: insert_events
INSERT INTO event (seq, rev, kind, at, reason)
SELECT * FROM unnest(%s::bigint[], %s::integer[], %s::text[], %s::bigint[], %s::text[])

-- name: seqs_of_ids
SELECT coalesce(json_agg(job.seq), '[]')
FROM json_array_elements_text(%s) AS wanted
JOIN job ON job.id = wanted.value AND job.tenant = %s
