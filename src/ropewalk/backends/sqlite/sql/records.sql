-- Reads and writes whole records. Many records are one row of JSON, so that the interpreter lock is released only
-- once, and msgspec decodes them. Columns that most jobs do not use come separately, only for the jobs that use
-- them; the large byte columns come beside the JSON in one piece each, because JSON has no bytes. The lists of
-- columns are made from JobRecord (columns.py).

-- part: record_columns
-- The columns of any number of jobs. The first column contains the values in the order of the fields of JobRecord.
json_group_array(json_array(/* see head_values */)),
/* see other_columns */

-- part: record_columns_carefully
json_group_array(job.seq)

-- part: ready_columns
-- The record_columns of jobs that are about to be leased, without the values that the lease sets.
json_group_array(json_array(/* see ready_values */)),
/* see other_columns */

-- part: ready_columns_carefully
json_group_array(job.seq)

-- part: columns_without_bytes
-- The same without input, checkpoint and result, for those who look at many jobs often.
json_group_array(json_array(/* see head_values */)),
/* see small_columns
checkpoint = NULL
result = NULL
*/,
json_group_array(0), NULL, NULL, NULL

-- part: columns_without_bytes_carefully
json_group_array(job.seq)

-- part: small_columns
json_group_object(job.seq, json_object(
    /* see other_values */, 'checkpoint_bytes', length({checkpoint}), 'result_bytes', length({result})
)) FILTER (WHERE /* see has_counts */ OR coalesce(/* see nullable_others */, {checkpoint}, {result}) IS NOT NULL),
json_group_object(job.seq, json_array(/* see place_columns */))
    FILTER (WHERE coalesce(/* see place_columns */) IS NOT NULL)

-- part: other_columns
/* see small_columns
checkpoint = checkpoint
result = result
*/,
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
-- Returns a value, and whether it is text. Text comes as bytes, because it may not be valid UTF-8.
iif(typeof({column}) = 'text', CAST({column} AS BLOB), {column}), typeof({column}) = 'text'

-- name: mend_fence
UPDATE job SET fence = ? WHERE seq = ?

-- name: save_jobs
WITH changed (/* see saved_columns */) AS (VALUES (/* see saved_marks */) /* each row */)
UPDATE job SET /* see saved_values */
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
