-- Reading and writing whole records.
-- One row of JSON instead of a row a job: the interpreter lock is given up once, and decoding is msgspec's.
-- What most jobs do not have comes apart, only for those that do; the large byte columns (JSON has no bytes) travel
-- beside it in one piece each.

-- part: record_columns
-- Of any number of jobs. The first is in the order of JobRecord's fields.
json_group_array(json_array(
    job.seq, job.id, tenant, job.type, queue, '', status, last_move, priority, prio_key, time_key, created_at,
    run_at, updated_at, flags, run, rev, attempt, max_attempts, crashes, max_crashes, fence, owner, ticket,
    lease_expires_at, start_rev, started_at, finished_at, format, trace
)),
/* see other_columns */

-- part: record_columns_carefully
json_group_array(job.seq)

-- part: ready_columns
-- The same of jobs that are ready, to be claimed: without what a claim is about to set.
json_group_array(json_array(
    job.seq, job.id, tenant, job.type, queue, '', 'waiting', 'submit', priority, prio_key, time_key, created_at,
    run_at, 0, flags, run, rev, attempt, max_attempts, crashes, max_crashes, fence, NULL, 0,
    NULL, 0, NULL, finished_at, format, trace
)),
/* see other_columns */

-- part: ready_columns_carefully
json_group_array(job.seq)

-- part: other_columns
json_group_object(job.seq, json_object(
    'timeout_us', timeout_us, 'backoff', json(backoff), 'lease_us', lease_us, 'deadline', deadline,
    'idempotency_key', idempotency_key, 'correlation_id', correlation_id, 'tags', json(coalesce(tags, '{}')),
    'workflow_id', workflow_id, 'workflow_type', workflow_type, 'chain_id', chain_id, 'chain_index', chain_index,
    'unmet', unmet, 'depth', depth, 'gate', json(gate), 'awaits', awaits, 'wake_at', wake_at,
    'on_failure', json(on_failure), 'origin', json(origin),
    'callback_url', callback_url, 'fairness', fairness,
    'progress', json(progress), 'error', json(error), 'cancel', json(cancel),
    'checkpoint_bytes', length(checkpoint), 'result_bytes', length(result)
)) FILTER (WHERE unmet > 0 OR depth > 0 OR coalesce(
    timeout_us, backoff, lease_us, deadline, idempotency_key, correlation_id, tags, workflow_id, workflow_type,
    chain_id, chain_index, gate, awaits, wake_at, on_failure, origin, callback_url, fairness,
    progress, error, cancel, checkpoint, result
) IS NOT NULL),
json_group_object(job.seq, json_array(scope_id, group_id, parent_id, spawn_key, limit_key))
    FILTER (WHERE coalesce(scope_id, group_id, parent_id, spawn_key, limit_key) IS NOT NULL),
json_group_array(length(input)),
CAST(group_concat(input, '') AS BLOB),
CAST(group_concat(checkpoint, '') AS BLOB),
CAST(group_concat(result, '') AS BLOB)

-- name: load_jobs
SELECT /* see record_columns */
FROM json_each(?) AS wanted
CROSS JOIN job ON job.seq = wanted.value

-- name: note_dependants
-- domain.jobs.flags.HAS_DEPENDANTS is 1.
UPDATE job SET flags = flags | 1 WHERE seq IN (SELECT value FROM json_each(?))

-- name: one_job
SELECT stage, sublane / 2, {columns} FROM job WHERE seq = ?

-- name: one_column
-- A value, and whether it is text; text as its bytes, which need not be UTF-8.
iif(typeof({column}) = 'text', CAST({column} AS BLOB), {column}), typeof({column}) = 'text'

-- name: mend_fence
UPDATE job SET fence = ? WHERE seq = ?

-- name: save_jobs
WITH changed (
    seq, fence, stage, status, last_move, priority, prio_key, time_key, run_at, updated_at, flags, run, rev, attempt,
    crashes, owner, lease_expires_at, start_rev, started_at, finished_at, deadline, chain_id, chain_index, unmet,
    awaits, wake_at, gate, progress, error, cancel, input, checkpoint, result
) AS (
    VALUES (
        ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
    ) /* each row */
)
UPDATE job SET
    stage = changed.stage, status = changed.status, last_move = changed.last_move, priority = changed.priority,
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
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) /* each row */

-- name: insert_events
INSERT INTO event (seq, rev, kind, at, reason) VALUES (?, ?, ?, ?, ?) /* each row */

-- name: seqs_of_ids
SELECT json_group_array(job.seq)
FROM json_each(?) AS wanted
CROSS JOIN job ON job.id = wanted.value AND job.tenant = ?
