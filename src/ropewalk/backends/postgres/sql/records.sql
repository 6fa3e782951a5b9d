-- Reads and writes whole records. Rows are found by number in ways that leave the planner no choice (`= ANY`,
-- LATERAL), because its statistics of a table that was empty a moment ago are worthless, and a plan is kept. `each(3
-- text)` is the value of the third array for the current row; the first array contains the numbers, in order
-- (statements.py). Many records are one row of JSON, which msgspec decodes. Columns that most jobs do not use come
-- separately, only for the jobs that use them; the large byte columns come beside the JSON in one piece each,
-- because JSON has no bytes. A transaction that is about to write takes all locks in the order of the numbers. The
-- lists of columns are made from JobRecord (columns.py).

-- part: record_columns
-- The columns of any number of jobs. The first column contains the values in the order of the fields of JobRecord.
coalesce(json_agg(json_build_array(/* see head_values */)), '[]'),
/* see other_columns */

-- part: record_columns_carefully
coalesce(json_agg(seq), '[]')

-- part: columns_without_bytes
-- The same without input, checkpoint and result, for those who look at many jobs often.
coalesce(json_agg(json_build_array(/* see head_values */)), '[]'),
/* see small_columns
checkpoint = NULL::bytea
result = NULL::bytea
*/,
coalesce(json_agg(0), '[]'), NULL, NULL, NULL

-- part: columns_without_bytes_carefully
coalesce(json_agg(seq), '[]')

-- part: small_columns
coalesce(json_object_agg(seq, json_build_object(
    /* see other_values */, 'checkpoint_bytes', length({checkpoint}), 'result_bytes', length({result})
)) FILTER (WHERE /* see has_counts */ OR num_nonnulls(/* see nullable_others */, {checkpoint}, {result}) > 0), '{}'),
coalesce(json_object_agg(seq, json_build_array(/* see place_columns */))
    FILTER (WHERE num_nonnulls(/* see place_columns */) > 0), '{}')

-- part: other_columns
/* see small_columns
checkpoint = checkpoint
result = result
*/,
coalesce(json_agg(length(input)), '[]'),
string_agg(input, ''),
string_agg(checkpoint, ''),
string_agg(result, '')

-- name: load_jobs
WITH loaded AS MATERIALIZED (
    SELECT *
    FROM (
        SELECT value::bigint AS seq, at AS wanted_at
        FROM json_array_elements_text(%s) WITH ORDINALITY AS given (value, at)
        ORDER BY 1
    ) AS wanted
    JOIN LATERAL (SELECT * FROM job_by_stage WHERE job_by_stage.seq = wanted.seq FOR UPDATE) AS head USING (seq)
    JOIN LATERAL (SELECT * FROM submitted WHERE submitted.seq = wanted.seq FOR UPDATE) AS body USING (seq)
)
SELECT /* see record_columns */
FROM (SELECT * FROM loaded ORDER BY wanted_at) AS job

-- name: note_dependants
-- domain.jobs.flags.HAS_DEPENDANTS is 1.
UPDATE job_by_stage SET flags = flags | 1 WHERE seq = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text(%s)))

-- name: note_live_dependants
-- Sets the flag of those of these jobs, named by (tenant, id), that have not ended and do not have it yet.
UPDATE job_by_stage SET flags = flags | 1
WHERE stage < 3 AND flags & 1 = 0 AND seq = ANY (ARRAY(
    SELECT submitted.seq
    FROM json_array_elements(%s) AS wanted
    JOIN submitted ON submitted.id = wanted ->> 1 AND submitted.tenant = wanted ->> 0
))

-- name: one_job
SELECT stage, sublane / 2, {columns} FROM job WHERE seq = %s

-- name: one_column
-- Returns a value, and whether it is text that comes as bytes. It never is, because text is always UTF-8 here.
{column}, false

-- name: mend_fence
UPDATE job_by_stage SET fence = %s WHERE seq = %s

-- name: save_jobs
WITH rewritten AS (
    UPDATE submitted SET /* see rewritten_values */
    WHERE seq = ANY (%(1)s::bigint[])
        AND (/* see rewritten_columns */) IS DISTINCT FROM (/* see rewritten_saved */)
)
UPDATE job_by_stage SET sublane = sublane / 2 * 2 + /* see crashed_saved */, /* see saved_values */
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
