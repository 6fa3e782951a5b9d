-- What the holder of a lease writes. Every statement checks the fence and the owner.

-- part: completed
-- Writes what domain.jobs.transition.settle changes in the record of a completion.
stage = 3, status = 'completed', last_move = 'complete', rev = rev + 1, updated_at = {now}, finished_at = {now},
lease_expires_at = NULL, error = NULL, result = {result}

-- name: complete_plain
-- Completes those of these jobs that the owner holds and that have no other flags than these. The first statement
-- returns, column by column, the number and the lane of each job, how long it waited, how long it ran, and how long
-- it took in all. It comes first because an UPDATE that returns its rows would release the interpreter lock for each
-- of them.
SELECT json_array(
    json_group_array(job.seq), json_group_array(lane),
    json_group_array(started_at - run_at), json_group_array(?2 - started_at), json_group_array(?2 - created_at)
)
FROM json_each(?1) AS done
CROSS JOIN job ON job.seq = CAST(done.key AS INTEGER)
WHERE job.fence = done.value AND job.owner = ?3 AND job.stage = 2 AND job.flags & ~?4 = 0
-- range: up, same, bytes
SELECT json_array(
    json_group_array(seq), json_group_array(lane),
    json_group_array(started_at - run_at), json_group_array(?5 - started_at), json_group_array(?5 - created_at)
)
FROM job
WHERE seq BETWEEN ?1 AND ?1 + ?4 - 1 AND fence = ?2 AND owner = ?6 AND stage = 2 AND flags & ~?7 = 0
-- then
WITH done (seq, fence, result) AS (VALUES (?, ?, ?) /* each row */),
given (now) AS (VALUES (?))
UPDATE job SET
    /* see completed
    now = given.now
    result = done.result
    */
FROM done
CROSS JOIN given
WHERE job.seq = done.seq AND job.fence = done.fence AND job.owner = ? AND job.stage = 2 AND job.flags & ~? = 0
-- range: up, same, bytes
UPDATE job SET
    /* see completed
    now = ?5
    result = substr(?3, 1 + (seq - ?1) * (length(?3) / ?4), length(?3) / ?4)
    */
WHERE seq BETWEEN ?1 AND ?1 + ?4 - 1 AND fence = ?2 AND owner = ?6 AND stage = 2 AND flags & ~?7 = 0

-- name: leases_to_renew
SELECT json_group_array(json_array(job.seq, fence, json(cancel)))
FROM json_each(?) AS wanted
CROSS JOIN job ON job.seq = wanted.value
WHERE stage = 2 AND owner = ?

-- name: standing_of
SELECT json_group_array(json_array(job.seq, fence, owner, status))
FROM json_each(?) AS wanted
CROSS JOIN job ON job.seq = wanted.value

-- name: insert_lines
INSERT OR IGNORE INTO log (seq, fence, position, attempt, at, level, message, fields)
VALUES (?, ?, ?, ?, ?, ?, ?, ?) /* each row */

-- name: trim_lines
DELETE FROM log WHERE seq = ? AND (fence, position) <= (
    SELECT fence, position FROM log WHERE seq = ? ORDER BY fence DESC, position DESC LIMIT 1 OFFSET ?
)

-- name: renew_leases
WITH renewed (seq, fence, lease_expires_at, progress) AS (VALUES (?, ?, ?, ?) /* each row */)
UPDATE job SET
    lease_expires_at = renewed.lease_expires_at, progress = coalesce(renewed.progress, job.progress)
FROM renewed
WHERE job.seq = renewed.seq AND job.fence = renewed.fence AND job.owner = ? AND job.stage = 2

-- name: write_note
UPDATE job SET checkpoint = ?, progress = ? WHERE seq = ? AND fence = ? AND owner = ? AND stage = 2

-- name: register_worker
INSERT INTO worker (id, host, pid, types, queues, tenants, concurrency, started_at, beat_at, lease_us)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    host = excluded.host, pid = excluded.pid, types = excluded.types, queues = excluded.queues,
    tenants = excluded.tenants, concurrency = excluded.concurrency, beat_at = excluded.beat_at,
    lease_us = excluded.lease_us

-- name: beat
UPDATE worker SET beat_at = ? WHERE id = ? RETURNING draining

-- name: drain_worker
UPDATE worker SET draining = 1 WHERE id = ?

-- name: unregister_worker
DELETE FROM worker WHERE id = ?

-- name: bump_control
UPDATE meta SET control = control + 1
