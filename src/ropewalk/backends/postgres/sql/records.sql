-- Reading and writing whole records.
-- Rows are found by number in ways that leave the planner no choice (`= ANY`, LATERAL): what it knows of a table that was
-- empty a moment ago is worth nothing, and a plan is kept. `each(3 text)` is the third array's value for the row at hand:
-- the first array holds the numbers, in order (statements.py).
-- One row of JSON instead of a row a job: decoding is msgspec's. What most jobs do not have comes apart, only for those
-- that do; the large byte columns (JSON has no bytes) travel beside it in one piece each.
-- Where somebody is about to write, every lock is taken in order of number.

-- part: record_columns
-- Of any number of jobs. The first is in the order of JobRecord's fields.
coalesce(json_agg(json_build_array(
    seq, id, tenant, type, queue, '', status, last_move, priority, prio_key, time_key, created_at,
    run_at, updated_at, flags, run, rev, attempt, max_attempts, crashes, max_crashes, fence, owner, ticket,
    lease_expires_at, start_rev, started_at, finished_at, format, trace
)), '[]'),
/* see other_columns */

-- part: record_columns_carefully
coalesce(json_agg(seq), '[]')

-- part: other_columns
coalesce(json_object_agg(seq, json_build_object(
    'timeout_us', timeout_us, 'backoff', backoff::json, 'lease_us', lease_us, 'deadline', deadline,
    'idempotency_key', idempotency_key, 'correlation_id', correlation_id, 'tags', coalesce(tags, '{}')::json,
    'workflow_id', workflow_id, 'workflow_type', workflow_type, 'chain_id', chain_id, 'chain_index', chain_index,
    'unmet', unmet, 'depth', depth, 'gate', gate::json, 'awaits', awaits, 'wake_at', wake_at,
    'on_failure', on_failure::json, 'origin', origin::json,
    'callback_url', callback_url, 'fairness', fairness,
    'progress', progress::json, 'error', error::json, 'cancel', cancel::json,
    'checkpoint_bytes', length(checkpoint), 'result_bytes', length(result)
)) FILTER (WHERE unmet > 0 OR depth > 0 OR num_nonnulls(
    timeout_us, backoff, lease_us, deadline, idempotency_key, correlation_id, tags, workflow_id, workflow_type,
    chain_id, chain_index, gate, awaits, wake_at, on_failure, origin, callback_url, fairness,
    progress, error, cancel, checkpoint, result
) > 0), '{}'),
coalesce(json_object_agg(seq, json_build_array(scope_id, group_id, parent_id, spawn_key, limit_key))
    FILTER (WHERE num_nonnulls(scope_id, group_id, parent_id, spawn_key, limit_key) > 0), '{}'),
coalesce(json_agg(length(input)), '[]'),
string_agg(input, ''),
string_agg(checkpoint, ''),
string_agg(result, '')

-- name: load_jobs
WITH loaded AS MATERIALIZED (
    SELECT
        head.*, wanted.at AS wanted_at, max_crashes, timeout_us, lease_us, scope_id, depth, chain_index,
        id, tenant, type, queue, idempotency_key, correlation_id, workflow_id, workflow_type, group_id, parent_id,
        spawn_key, chain_id, callback_url, fairness, limit_key, trace, backoff, tags, on_failure, origin, input
    FROM (
        SELECT value::bigint AS seq, at FROM json_array_elements_text(%s) WITH ORDINALITY AS given (value, at) ORDER BY 1
    ) AS wanted
    CROSS JOIN LATERAL (SELECT * FROM job_by_stage WHERE job_by_stage.seq = wanted.seq FOR UPDATE) AS head
    CROSS JOIN LATERAL (SELECT * FROM submitted WHERE submitted.seq = wanted.seq FOR UPDATE) AS body
)
SELECT /* see record_columns */
FROM (SELECT * FROM loaded ORDER BY wanted_at) AS job

-- name: note_dependants
-- domain.jobs.flags.HAS_DEPENDANTS is 1.
UPDATE job_by_stage SET flags = flags | 1 WHERE seq = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))

-- name: note_live_dependants
-- The same of those among these (tenant, id) that have not ended, and that have not got the flag yet.
UPDATE job_by_stage SET flags = flags | 1
WHERE stage < 3 AND flags & 1 = 0 AND seq = ANY (ARRAY(
    SELECT submitted.seq
    FROM json_array_elements(%s) AS wanted
    JOIN submitted ON submitted.id = wanted ->> 1 AND submitted.tenant = wanted ->> 0
))

-- name: one_job
SELECT stage, sublane / 2, {columns} FROM job WHERE seq = %s

-- name: one_column
-- A value, and whether it is text that is given as bytes: this store's text is always UTF-8.
{column}, false

-- name: mend_fence
UPDATE job_by_stage SET fence = %s WHERE seq = %s

-- name: save_jobs
WITH rewritten AS (
    UPDATE submitted SET chain_id = each(22 text), chain_index = each(23 integer), input = each(31 bytea)
    WHERE seq = ANY (%(1)s::bigint[])
        AND (chain_id, chain_index, input) IS DISTINCT FROM (each(22 text), each(23 integer), each(31 bytea))
)
UPDATE job_by_stage SET
    stage = each(3 smallint), status = each(4 text), last_move = each(5 text), priority = each(6 integer),
    prio_key = each(7 bigint), time_key = each(8 bigint), run_at = each(9 bigint), updated_at = each(10 bigint),
    flags = each(11 integer), run = each(12 integer), rev = each(13 integer), attempt = each(14 bigint),
    sublane = sublane / 2 * 2 + (each(15 bigint) > 0)::integer, crashes = each(15 bigint), owner = each(16 text),
    lease_expires_at = each(17 bigint), start_rev = each(18 integer), started_at = each(19 bigint),
    finished_at = each(20 bigint), deadline = each(21 bigint), unmet = each(24 integer), awaits = each(25 text),
    wake_at = each(26 bigint), gate = each(27 text), progress = each(28 text), error = each(29 text),
    cancel = each(30 text), checkpoint = each(32 bytea), result = each(33 bytea)
WHERE seq = ANY (%(1)s::bigint[]) AND fence = each(2 bigint)

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
SELECT coalesce(json_agg(found.seq ORDER BY wanted.at), '[]')
FROM json_array_elements_text(%s) WITH ORDINALITY AS wanted (id, at)
CROSS JOIN LATERAL (SELECT seq FROM submitted WHERE submitted.id = wanted.id AND tenant = %s OFFSET 0) AS found
